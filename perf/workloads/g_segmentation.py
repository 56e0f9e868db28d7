"""Workload G: inference with a small U-Net in PyTorch, whose weights come from a fixed seed, on tiles
of photographs. Each tile makes the same tensors, of 3 to 17 MB."""

import hashlib
import sys

import torch
from torch import nn

import photographs
from loops import iteration

NAMES = ("Blinds", "Dune", "RainDrops", "Storm")  # those of at least two tiles each way
TILE, WIDTH = 512, 16


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    """Halves the picture three times and enlarges it again, with what was there at each size."""

    def __init__(self, classes=8):
        super().__init__()
        widths = [WIDTH * 2**level for level in range(4)]
        self.down = nn.ModuleList(map(block, [3, *widths[:-1]], widths))
        self.up = nn.ModuleList(block(3 * width, width) for width in reversed(widths[:-1]))
        self.classes = nn.Conv2d(WIDTH, classes, 1)

    def forward(self, values):
        kept = []
        for down in self.down:
            values = down(values if not kept else nn.functional.max_pool2d(values, 2))
            kept.append(values)
        kept.pop()
        for up in self.up:
            values = up(torch.cat([nn.functional.interpolate(values, scale_factor=2.0), kept.pop()],
                                  dim=1))
        return self.classes(values)


def tiles_of(name):
    picture = torch.from_numpy(photographs.load(name)).permute(2, 0, 1)
    for top in range(0, picture.shape[1] - TILE + 1, TILE):
        for left in range(0, picture.shape[2] - TILE + 1, TILE):
            yield picture[None, :, top:top + TILE, left:left + TILE]


@torch.no_grad()
def main():
    if sys.argv[1:] == ["--prepare"]:
        photographs.prepare(NAMES)
        return
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    network = UNet().eval()
    digest = hashlib.sha256()
    tiles = [tile for name in NAMES for tile in tiles_of(name)]
    for tile in tiles:
        with iteration("tile"):
            classes = network(tile.to(torch.float32) / 255).argmax(dim=1).to(torch.uint8)
            digest.update(classes.numpy().tobytes())
            del classes
    print(f"result: {len(tiles)} tiles, {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
