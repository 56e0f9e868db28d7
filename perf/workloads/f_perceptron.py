"""Workload F: trains a multilayer perceptron in NumPy on scikit-learn's digits in small batches. Its
arrays have a few KiB at most, and there are millions of them."""

import hashlib
import sys
from pathlib import Path

import numpy as np

# 1797 digits of 8 x 8 pixels with labels, from the package python3-sklearn.
DIGITS = Path("/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz")
BATCH, HIDDEN, EPOCHS, TESTED = 16, 32, 800, 297


def read_digits():
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.float32)
    return table[:, :64] / 16, table[:, 64].astype(np.int64)


class Perceptron:
    """64 pixels, one hidden layer, 10 probabilities; gradient descent with momentum."""

    def __init__(self, draw):
        self.weights = [draw.normal(0, 0.2, shape).astype(np.float32)
                        for shape in ((64, HIDDEN), (HIDDEN, 10))]
        self.biases = [np.zeros(size, np.float32) for size in (HIDDEN, 10)]
        self.speeds = [np.zeros_like(one) for one in self.weights + self.biases]

    def forward(self, images):
        hidden = np.maximum(images @ self.weights[0] + self.biases[0], 0)
        scores = hidden @ self.weights[1] + self.biases[1]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, powers / powers.sum(axis=1, keepdims=True)

    def learn(self, images, digits, rate):
        hidden, probabilities = self.forward(images)
        error = probabilities.copy()
        error[np.arange(len(digits)), digits] -= 1
        error = error / len(digits)
        before = (error @ self.weights[1].T) * (hidden > 0)
        gradients = [images.T @ before, hidden.T @ error, before.sum(axis=0), error.sum(axis=0)]
        for number, gradient in enumerate(gradients):
            self.speeds[number] = 0.9 * self.speeds[number] - rate * gradient
        self.weights = [one + speed for one, speed in zip(self.weights, self.speeds[:2])]
        self.biases = [one + speed for one, speed in zip(self.biases, self.speeds[2:])]

    def share_right(self, images, digits):
        return np.mean(self.forward(images)[1].argmax(axis=1) == digits)


def main():
    images, digits = read_digits()
    if sys.argv[1:] == ["--prepare"]:
        return
    draw = np.random.default_rng(1)
    network = Perceptron(draw)
    learned = len(images) - TESTED
    for _ in range(EPOCHS):
        order = draw.permutation(learned)
        for begin in range(0, learned, BATCH):
            chosen = order[begin:begin + BATCH]
            network.learn(images[chosen], digits[chosen], np.float32(0.02))
    right = network.share_right(images[learned:], digits[learned:])
    digest = hashlib.sha256(b"".join(one.tobytes() for one in network.weights)).hexdigest()[:16]
    print(f"result: {right:.4f} of {TESTED} digits right, weights {digest}")


if __name__ == "__main__":
    main()
