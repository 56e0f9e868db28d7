"""PyTorch computes bitwise the same results with and without the pool. The small networks of workloads
A and B in perf/workloads are trained for some steps and run once, each in a new process."""

import unittest
from pathlib import Path

from support import run_python

WORKLOADS = Path(__file__).resolve().parents[3] / "perf" / "workloads"

BEGIN = """
import hashlib, sys, tensorpool, torch
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "pool":
    tensorpool.enable_torch()
torch.set_num_threads(int(sys.argv[3]))
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
generator = torch.Generator().manual_seed(2)

def show(network, *others):
    assert tensorpool.torch_is_enabled() == (sys.argv[2] == "pool")
    for name, tensor in (*network.state_dict().items(), *others):
        print(name, hashlib.sha256(tensor.numpy().tobytes()).hexdigest())
"""
DENOISER = BEGIN + """
import a_denoiser
a_denoiser.STEPS = 6
photographs = [torch.rand(1, 3, 200, 300, generator=generator) for _ in range(3)]
network = a_denoiser.Denoiser()
loss = a_denoiser.train(network, photographs, generator)
before, after = a_denoiser.gain(network, photographs[0], generator)
show(network, ("loss", torch.tensor(loss)), ("psnr", torch.tensor([before, after])))
"""
TRANSFORMER = BEGIN + """
import b_transformer
b_transformer.STEPS, b_transformer.BATCH = 4, 8
text = torch.randint(90, (20_000,), generator=generator)
network = b_transformer.Transformer(90)
losses = b_transformer.train(network, text, generator)
show(network, ("losses", torch.tensor(losses)))
"""


class SameResult(unittest.TestCase):
    """Each printed line is a tensor's name and hash, so a failure shows the first difference."""

    def check(self, program):
        for threads in ("1", "2"):
            # Threads that wait in a busy loop would compete for the cores.
            printed = [run_python(program, str(WORKLOADS), allocator, threads,
                                  OMP_WAIT_POLICY="passive")
                       for allocator in ("malloc", "malloc", "pool")]
            self.assertGreater(printed[0].count("\n"), 8)
            self.assertEqual(printed[1], printed[0], "even without the pool")
            self.assertEqual(printed[2], printed[0])

    def test_of_a_convolutional_network(self):
        self.check(DENOISER)

    def test_of_a_transformer(self):
        self.check(TRANSFORMER)


if __name__ == "__main__":
    unittest.main()
