"""Programs for NumPy that smooth pictures. The argument names one. A comment marks each line whose memory
grows, about 2 MiB per iteration."""

import sys

import numpy as np
import tensorpool

ITERATIONS = 60
SHAPE = 512, 512  # 2 MiB


def smooth(picture):
    for _ in range(3):
        picture = np.sqrt(picture * np.roll(picture, 1, axis=0))
    return picture


def replaces_a_picture():
    for _ in range(ITERATIONS):
        with tensorpool.iteration("picture"):
            smooth(np.random.rand(*SHAPE))


def keeps_pictures_in_a_list():
    pictures = []
    for _ in range(ITERATIONS):
        with tensorpool.iteration("picture"):
            picture = np.random.rand(*SHAPE)
            smooth(picture)
            pictures.append(picture - 1)  # grows


def keeps_views_of_pictures():
    rows = []
    for _ in range(ITERATIONS):
        with tensorpool.iteration("picture"):
            picture = np.random.rand(*SHAPE)  # grows
            smooth(picture)
            rows.append(picture[0])


def keeps_small_arrays():
    columns = []
    for _ in range(ITERATIONS):
        with tensorpool.iteration("picture"):
            picture = smooth(np.random.rand(*SHAPE))
            columns.append([column.copy() for column in picture.T])  # grows


def appends_to_an_array():
    pictures = np.empty((0, SHAPE[1]))
    for _ in range(ITERATIONS):
        with tensorpool.iteration("picture"):
            pictures = np.concatenate([pictures, smooth(np.random.rand(*SHAPE))])  # grows


def keeps_a_window_for_each_size():
    windows = {}
    for number in range(ITERATIONS):
        with tensorpool.iteration("picture"):
            smooth(np.random.rand(*SHAPE))
            windows[number] = np.ones(SHAPE[0] * SHAPE[1] + number)  # grows


if __name__ == "__main__":
    globals()[sys.argv[1]]()
