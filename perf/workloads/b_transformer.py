"""Workload B: trains a small character transformer on the license texts of Debian's package
base-files, then generates text."""

import hashlib
import sys
from pathlib import Path

import torch
from torch import nn

from loops import iteration

LICENSES = Path("/usr/share/common-licenses")
CONTEXT, BATCH, STEPS, WRITTEN = 256, 16, 24, 100
WIDTH, HEADS, LAYERS = 128, 4, 3


def read_texts():
    """Returns all licenses as a tensor of character numbers, and the number of distinct characters."""
    texts = [file.read_text() for file in sorted(LICENSES.iterdir()) if not file.is_symlink()]
    text = "\f".join(texts)
    number_of = {character: number for number, character in enumerate(sorted(set(text)))}
    return torch.tensor([number_of[character] for character in text]), len(number_of)


class Attention(nn.Module):
    """Causal self-attention: each character attends to itself and to those before it."""

    def __init__(self):
        super().__init__()
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("later", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1))

    def forward(self, values):
        batch, length, _ = values.shape
        heads = self.queries_keys_values(values).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(self.later[:length, :length], float("-inf"))
        mixed = scores.softmax(dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_rest = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.rest = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, values):
        values = values + self.attention(self.before_attention(values))
        return values + self.rest(self.before_rest(values))


class Transformer(nn.Module):
    def __init__(self, characters):
        super().__init__()
        self.characters = nn.Embedding(characters, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH))
        self.scores = nn.Linear(WIDTH, characters)

    def forward(self, text):
        return self.scores(self.layers(self.characters(text) + self.positions[:text.shape[1]]))


def batch_of(text, generator):
    begins = torch.randint(len(text) - CONTEXT - 1, (BATCH,), generator=generator).tolist()
    return torch.stack([text[begin:begin + CONTEXT + 1] for begin in begins])


def loss_of(network, batch):
    """Returns the loss of predicting the next characters of the batch, in nats."""
    scores = network(batch[:, :-1])
    return nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())


def train(network, text, generator):
    """Trains the network. Returns the loss at the first step and at the last."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    losses = []
    for _ in range(STEPS):
        with iteration("train"):
            loss = loss_of(network, batch_of(text, generator))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses[0], losses[-1]


@torch.no_grad()
def write(network, text, generator):
    """Extends a text by WRITTEN characters, each drawn from the network's distribution."""
    for _ in range(WRITTEN):
        likely = network(text[None, -CONTEXT:])[0, -1].softmax(dim=0)
        text = torch.cat([text, torch.multinomial(likely, 1, generator=generator)])
    return text


def main():
    if sys.argv[1:] == ["--prepare"]:
        return
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    text, characters = read_texts()
    network = Transformer(characters)
    generator = torch.Generator().manual_seed(2)
    first, last = train(network, text, generator)
    written = write(network, text[:50], generator)
    digest = hashlib.sha256(bytes(written.tolist())).hexdigest()[:16]
    print(f"result: loss {first:.4f} at first, {last:.4f} after {STEPS} steps ({last.hex()}), "
          f"then wrote {digest}")


if __name__ == "__main__":
    main()
