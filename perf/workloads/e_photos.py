"""Workload E: develops photographs in NumPy in the usual style: whole pictures in float32, and a new
array for each step. The steps are white balance, denoising and sharpening with blurs by shifted
sums, a curve from the histogram, and a smaller copy."""

import hashlib
import sys

import numpy as np

import photographs
from loops import iteration

NAMES = sorted(file.stem for file in photographs.FOLDER.glob("*.jpg"))  # twelve, of seven sizes
LUMINANCE = np.array([0.2126, 0.7152, 0.0722], np.float32)


def white_balance(image):
    """Applies the gray-world assumption: the mean of the picture becomes gray."""
    means = image.mean(axis=(0, 1))
    return image * (means.mean() / means)


def blur_along(image, axis, radius):
    """Blurs along one axis with binomial weights, by sums of shifted pictures."""
    weights = np.array([1.0])
    for _ in range(2 * radius):
        weights = np.convolve(weights, [0.5, 0.5])
    padding = [(0, 0)] * image.ndim
    padding[axis] = (radius, radius)
    padded = np.pad(image, padding, mode="edge")
    total = np.zeros_like(image)
    for offset, weight in enumerate(weights.astype(np.float32)):
        total += weight * np.take(padded, range(offset, offset + image.shape[axis]), axis=axis) \
            if axis else weight * padded[offset:offset + image.shape[0]]
    return total


def blur(image, radius):
    return blur_along(blur_along(image, 0, radius), 1, radius)


def denoise(image, strength=0.02):
    """Moves pixels towards the blur, fully where the difference is noise and less at edges."""
    difference = blur(image, 1) - image
    return image + difference * np.exp(-(difference / strength) ** 2)


def unsharp_mask(image, amount=0.6):
    return image + amount * (image - blur(image, 2))


def curve_of_histogram(image, strength=0.3):
    """Moves lightness towards an even histogram."""
    luminance = image @ LUMINANCE
    counts, edges = np.histogram(luminance, bins=256, range=(0, 1))
    even = np.cumsum(counts) / counts.sum()
    wanted = np.interp(luminance, edges[1:], even).astype(np.float32)
    gain = (1 - strength) + strength * wanted / np.maximum(luminance, np.float32(0.01))
    return image * gain[:, :, np.newaxis]


def tone_curve(image):
    """Applies an S-shaped curve between 0 and 1."""
    bounded = np.clip(image, 0, 1)
    return bounded * bounded * (3 - 2 * bounded)


def half_size(image):
    even = image[:image.shape[0] // 2 * 2, :image.shape[1] // 2 * 2]
    return (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4


def to_bytes(image):
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def develop(photograph):
    image = photograph.astype(np.float32) / 255
    image = white_balance(image)
    image = denoise(image)
    image = unsharp_mask(image)
    image = curve_of_histogram(image)
    image = tone_curve(image)
    return to_bytes(image), to_bytes(half_size(image))


def main():
    if sys.argv[1:] == ["--prepare"]:
        photographs.prepare(NAMES)
        return
    digest = hashlib.sha256()
    for name in NAMES:
        photograph = photographs.load(name)
        with iteration(str(photograph.shape), "1MiB"):
            for picture in develop(photograph):
                digest.update(picture.tobytes())
            del picture
    print(f"result: {len(NAMES)} photographs, {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
