"""Programs for OpenCV in Python that blur pictures. The argument names one. A comment marks each line
whose memory grows, 2.6 MiB per iteration."""

import sys

import cv2
import numpy as np
import tensorpool

ITERATIONS = 60
PICTURE = np.full((720, 1280, 3), 100, np.uint8)


def blurs():
    for _ in range(ITERATIONS):
        with tensorpool.iteration("frame"):
            cv2.GaussianBlur(PICTURE, (15, 15), 0)


def keeps_frames():
    frames = []
    for _ in range(ITERATIONS):
        with tensorpool.iteration("frame"):
            frames.append(cv2.GaussianBlur(PICTURE, (15, 15), 0))  # grows


if __name__ == "__main__":
    cv2.setNumThreads(1)
    globals()[sys.argv[1]]()
