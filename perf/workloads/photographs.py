"""Photographs of Debian's package mate-backgrounds as NumPy arrays of bytes, height x width x 3.

ImageMagick decodes each photograph once: `prepare` writes a .npy file for each to the folder
WORKLOAD_DATA. Workloads therefore neither measure a decoder nor need a library for one.
"""

import os
import subprocess
from pathlib import Path

import numpy

FOLDER = Path("/usr/share/backgrounds/mate/nature")
CONVERT = "/usr/bin/convert-im6.q16"  # package imagemagick-6.q16
DEFAULT_DATA = Path(__file__).resolve().parents[2] / "build" / "workloads"


def data_folder():
    return Path(os.environ.get("WORKLOAD_DATA", DEFAULT_DATA))


def decoded(name):
    """Returns the picture, decoded from binary PPM: three numbers as text, then the bytes."""
    done = subprocess.run([CONVERT, str(FOLDER / f"{name}.jpg"), "-strip", "-depth", "8", "ppm:-"],
                          capture_output=True, check=True)
    kind, width, height, maximum = done.stdout.split(maxsplit=4)[:4]
    assert (kind, maximum) == (b"P6", b"255"), f"{name}: {kind} {maximum}, expected P6 255"
    shape = int(height), int(width), 3
    size = shape[0] * shape[1] * 3
    return numpy.frombuffer(done.stdout[-size:], numpy.uint8).reshape(shape)


def prepare(names):
    data_folder().mkdir(parents=True, exist_ok=True)
    for name in names:
        file = data_folder() / f"{name}.npy"
        if not file.is_file():
            numpy.save(file, decoded(name))


def load(name):
    """Returns a prepared photograph, with values from 0 to 255."""
    return numpy.load(data_folder() / f"{name}.npy")
