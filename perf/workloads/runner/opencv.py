"""Work D: the main job's own process for one allocator (tools/photos), on its own photographs."""

import glob
import hashlib
from pathlib import Path

from .measure import Missing

PHOTOGRAPHS = "/usr/share/backgrounds/mate/nature/*.jpg"  # Debian's package mate-backgrounds


def output_folder(data):
    return Path(data) / "opencv"


def command(build, data, inside):
    """Plain cv::Mat under whatever malloc is, or `inside` with tensorpool/opencv.hpp."""
    folder = output_folder(data)
    folder.mkdir(parents=True, exist_ok=True)
    program = build / "tools" / "photos" / "tensorpool_photos"
    photographs = sorted(glob.glob(PHOTOGRAPHS))
    if not program.is_file():
        raise Missing(f"no {program}")
    if not photographs:
        raise Missing("the Debian package mate-backgrounds is not installed")
    return [str(program), "--work", "pool" if inside else "malloc", "--threads", "1",
            "--output", str(folder), "--", *photographs]


def result(printed, data):
    """A number for all files that it wrote, which are taken away; None where it failed."""
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
