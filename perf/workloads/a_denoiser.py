"""Workload A: trains a small convolutional network on crops of photographs to remove noise, then
applies it to whole photographs. Activations of about 140 MB follow one another."""

import math
import sys

import numpy
import torch
from torch import nn

import photographs
from loops import iteration

# All photographs of the package with up to 2.5 megapixels.
NAMES = ("Blinds", "Dune", "FreshFlower", "GreenMeadow", "RainDrops", "Storm")
NOISE, CHANNELS = 25 / 255, 16
STEPS, BATCH, CROP = 150, 16, 48


class Denoiser(nn.Sequential):
    """Four convolutions that estimate the noise of each pixel."""

    def __init__(self):
        layers = [nn.Conv2d(3, CHANNELS, 3, padding=1), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU()]
        super().__init__(*layers, nn.Conv2d(CHANNELS, 3, 3, padding=1))

    def forward(self, noisy):
        return noisy - super().forward(noisy)


def as_tensor(name):
    """Returns a photograph as 1 x 3 x height x width, with values from 0 to 1."""
    bytes_of_it = torch.from_numpy(photographs.load(name))
    return (bytes_of_it.permute(2, 0, 1).float() / 255)[None].contiguous()


def crops(photograph, generator):
    """Returns a batch of squares at random positions."""
    height, width = photograph.shape[2:]
    tops = torch.randint(height - CROP, (BATCH,), generator=generator).tolist()
    lefts = torch.randint(width - CROP, (BATCH,), generator=generator).tolist()
    return torch.cat([photograph[:, :, top:top + CROP, left:left + CROP]
                      for top, left in zip(tops, lefts)])


def with_noise(clean, generator):
    return clean + NOISE * torch.randn(clean.shape, generator=generator)


def train(network, clean, generator):
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for step in range(STEPS):
        with iteration("train"):
            batch = crops(clean[step % len(clean)], generator)
            loss = nn.functional.mse_loss(network(with_noise(batch, generator)), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def psnr(image, clean):
    """Returns the peak signal-to-noise ratio in decibels."""
    return -10 * math.log10(nn.functional.mse_loss(image.clamp(0, 1), clean).item())


@torch.no_grad()
def gain(network, clean, generator):
    """Returns the PSNR of a whole photograph with noise, and after the network."""
    noisy = with_noise(clean, generator)
    return psnr(noisy, clean), psnr(network(noisy), clean)


def main():
    if sys.argv[1:] == ["--prepare"]:
        photographs.prepare(NAMES)
        return
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(2)
    clean = [as_tensor(name) for name in NAMES]
    network = Denoiser()
    loss = train(network, clean, generator)
    gains = numpy.array([gain(network, photograph, generator) for photograph in clean])
    before, after = gains.mean(axis=0)
    print(f"result: {len(clean)} photographs, PSNR {before:.4f} dB before, {after:.4f} dB after, "
          f"last loss {loss.hex()}")


if __name__ == "__main__":
    main()
