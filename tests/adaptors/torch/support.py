"""What the tests of PyTorch's adaptor share. A program that imports it ends with 77, which ctest
counts as skipped, where PyTorch or the package is missing."""

import gc
import os
import subprocess
import sys
import unittest

try:
    import tensorpool
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def in_use():
    """Bytes of the global pool, which may not have been used yet."""
    gc.collect()
    return sum(pool["in_use_bytes"] for pool in tensorpool.statistics()["pools"])


def new_from_pool(elements=1000):
    """Whether a tensor that is made now lies in the pool."""
    before = in_use()
    tensor = torch.empty(elements)
    return in_use() > before and tensor.data_ptr() % 64 == 0


def run_python(code, *arguments, **variables):
    """A program of its own, which must end well; returns what it printed."""
    done = subprocess.run([sys.executable, "-B", "-c", code, *arguments], text=True,
                          capture_output=True, env=os.environ | variables)
    if done.returncode != 0:
        raise AssertionError(f"ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class EnabledCase(unittest.TestCase):
    """Tensors come from the pool in each test, which must leave in use what it found."""

    def setUp(self):
        tensorpool.enable_torch()
        self.addCleanup(tensorpool.disable_torch)
        torch.empty(1)  # sets the pool up
        self.in_use_before = in_use()

    def tearDown(self):
        self.assertEqual(in_use(), self.in_use_before)
