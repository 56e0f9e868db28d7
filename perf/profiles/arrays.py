"""Makes arrays at eight lines, in a random order from a fixed seed, and keeps a part of each line's
arrays until it ends. The argument is the number of times that each byte is written, as a program
does that works on its arrays."""

import os
import random
import sys

import numpy as np

STEPS = 24_000
WRITES = int(sys.argv[1])
DRAW = random.Random(1)


def filled(array):
    for value in range(WRITES):
        array.fill(value)
    return array


def size(kib):
    return DRAW.randint(kib * 512, kib * 1024)


MAKERS = (
    lambda: filled(np.empty(size(1), np.uint8)),
    lambda: filled(np.empty(size(4), np.uint8)),
    lambda: filled(np.empty(size(24), np.uint8)),
    lambda: filled(np.empty(size(48), np.uint8)),
    lambda: filled(np.empty(size(64), np.uint8)),
    lambda: filled(np.empty(size(96), np.uint8)),
    lambda: filled(np.empty(size(192), np.uint8)),
    lambda: filled(np.empty(size(384), np.uint8)),
)


def main():
    kept = [[] for _ in MAKERS]
    for _ in range(STEPS):
        line = DRAW.randrange(len(MAKERS))
        kept[line].append(MAKERS[line]())
        if len(kept[line]) > 1 and DRAW.random() < 0.5:
            del kept[line][DRAW.randrange(len(kept[line]))]
    print(sum(array.nbytes for arrays in kept for array in arrays) >> 20, "MiB kept", flush=True)
    os._exit(0)  # without freeing them


if __name__ == "__main__":
    main()
