"""Programs for PyTorch that train a small network. The argument names one. A comment marks each line
whose memory grows, about 2 MiB per iteration."""

import sys

import tensorpool
import torch
from torch import nn

ITERATIONS = 60
ROWS, WIDTH = 1024, 512  # 2 MiB


class Training:
    def __init__(self):
        self.network = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, WIDTH))
        self.optimizer = torch.optim.Adam(self.network.parameters())

    def loss_of(self, batch):
        return (self.network(batch) - batch).square().mean()

    def step(self, batch):
        loss = self.loss_of(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def trains(training):
    total = 0.0
    for _ in range(ITERATIONS):
        with tensorpool.iteration("step"):
            total += training.step(torch.randn(ROWS, WIDTH)).item()


def trains_with_batches_of_random_sizes(training):
    generator = torch.Generator().manual_seed(2)
    for _ in range(ITERATIONS):
        with tensorpool.iteration("step"):
            rows = int(torch.randint(ROWS // 2, 2 * ROWS, (1,), generator=generator))
            training.step(torch.randn(rows, WIDTH))


def keeps_outputs_in_a_list(training):
    outputs = []
    for _ in range(ITERATIONS):
        with tensorpool.iteration("step"):
            batch = torch.randn(ROWS, WIDTH)
            training.step(batch)
            with torch.no_grad():
                outputs.append(training.network(batch))  # grows


def adds_up_losses_with_their_graphs(training):
    total = 0
    for _ in range(ITERATIONS):
        with tensorpool.iteration("validation"):
            batch = torch.randn(ROWS, WIDTH)  # grows
            total += (training.network(batch) - batch).square().mean()  # grows


def keeps_a_mask_for_each_shape(training):
    masks = {}
    for number in range(ITERATIONS):
        with tensorpool.iteration("step"):
            batch = torch.randn(ROWS + number, WIDTH)
            if batch.shape not in masks:
                masks[batch.shape] = torch.ones(batch.shape)  # grows
            training.step(batch * masks[batch.shape])


def fills_a_cache_of_masks(training):
    masks = {}
    for number in range(ITERATIONS):
        with tensorpool.iteration("step"):
            shape_number = max((n for n in (0, 1, 2, 3, 4, 5, 6, 8, 11, 15) if n <= number))
            batch = torch.randn(ROWS + shape_number, WIDTH)
            if batch.shape not in masks:
                masks[batch.shape] = torch.ones(batch.shape)  # grows
            training.step(batch * masks[batch.shape])


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](Training())
