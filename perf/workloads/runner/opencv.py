"""Workload D: the program of tools/run (tools/photos) with one allocator, on its own photographs."""

import glob
import hashlib
from pathlib import Path

from .measure import Missing

PHOTOGRAPHS = "/usr/share/backgrounds/mate/nature/*.jpg"  # Debian's package mate-backgrounds


def output_folder(data):
    return Path(data) / "opencv"


def command(build, data, inside):
    """Returns the command. With `inside` cv::Mat uses tensorpool/opencv.hpp, otherwise malloc."""
    folder = output_folder(data)
    folder.mkdir(parents=True, exist_ok=True)
    program = build / "tools" / "photos" / "tensorpool_photos"
    photographs = sorted(glob.glob(PHOTOGRAPHS))
    if not program.is_file():
        raise Missing(f"{program} is missing")
    if not photographs:
        raise Missing("the Debian package mate-backgrounds is not installed")
    pairs = [path for one in photographs for path in (one, str(folder / Path(one).name))]
    return [str(program), "pool" if inside else "malloc", "plain", "1", *pairs]


def result(printed, data):
    """Returns a digest of all files that the program wrote, and removes them; None if it failed."""
    written = sorted(output_folder(data).iterdir())
    digest = hashlib.sha256()
    for file in written:
        digest.update(file.name.encode() + file.read_bytes())
        file.unlink()
    done = [line for line in printed.splitlines() if line.startswith("done ")]
    failed = [line for line in printed.splitlines() if line.startswith("failed ")]
    if failed or not done:
        return None
    return f"{len(done)} photographs, {digest.hexdigest()[:16]}"
