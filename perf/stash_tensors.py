#!/usr/bin/python3
"""Writes the tensors that stash_codecs_perf measures to a folder, one file each, named
<tensor>.<type>: the weights of workloads A and B after their training, in three types; photographs as
bytes and as numbers from 0 to 1; a mask; and the files of two trained models, if they are installed.
Needs PyTorch (packages of purpose torch) and ImageMagick."""

import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, str(Path(__file__).resolve().parent / "workloads"))

import numpy
import torch

import a_denoiser
import b_transformer
import photographs

MODELS = Path("/usr/share/pocketsphinx/model/en-us/en-us")
INSTALLED = {  # tensorpool's types of files of Debian's packages
    "tesseract.bytes": "/usr/share/tesseract-ocr/*/tessdata/eng.traineddata",
    "sphinx-means.fp32": str(MODELS / "means"),
    "sphinx-variances.fp32": str(MODELS / "variances"),
    "sphinx-mixtures.bytes": str(MODELS / "sendump"),
}


def weights(network):
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


def trained_denoiser():
    photographs.prepare(a_denoiser.NAMES)
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    clean = [a_denoiser.as_tensor(name) for name in a_denoiser.NAMES]
    network = a_denoiser.Denoiser()
    a_denoiser.train(network, clean, generator)
    return network


def trained_transformer():
    torch.manual_seed(1)
    text, characters = b_transformer.read_texts()
    network = b_transformer.Transformer(characters)
    b_transformer.train(network, text, torch.Generator().manual_seed(2))
    return network


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, network in (("a-weights", trained_denoiser()), ("b-weights", trained_transformer())):
        values = weights(network)
        values.numpy().tofile(folder / f"{name}.fp32")
        values.half().numpy().tofile(folder / f"{name}.fp16")
        values.bfloat16().view(torch.int16).numpy().tofile(folder / f"{name}.bf16")
    picture = photographs.load("Dune")
    picture[:800].tofile(folder / "photograph.bytes")
    (picture[:400].astype(numpy.float32) / 255).tofile(folder / "photograph.fp32")
    (picture[:, :, 0] > 128).tofile(folder / "mask.bytes")
    for name, pattern in INSTALLED.items():
        for file in Path("/").glob(pattern.lstrip("/")):
            shutil.copyfile(file, folder / name)


if __name__ == "__main__":
    main()
