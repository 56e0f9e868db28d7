"""Code shared by the tests of the allocator for PyTorch. A program that imports it exits with 77,
which ctest counts as skipped, if PyTorch or the package is missing."""

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
    """Returns the bytes in use of the global pool, which may not be set up yet."""
    gc.collect()
    return sum(pool["in_use_bytes"] for pool in tensorpool.statistics()["pools"])


def new_from_pool(elements=1000):
    """Returns whether a tensor that is made now comes from the pool."""
    before = in_use()
    tensor = torch.empty(elements)
    return in_use() > before and tensor.data_ptr() % 64 == 0


def run_python(code, *arguments, **variables):
    """Runs code in a new interpreter, which must succeed, and returns its output."""
    done = subprocess.run([sys.executable, "-B", "-c", code, *arguments], text=True,
                          capture_output=True, env=os.environ | variables)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class EnabledCase(unittest.TestCase):
    """Enables the pool for PyTorch in each test, which must not change the bytes in use."""

    def setUp(self):
        tensorpool.enable_torch()
        self.addCleanup(tensorpool.disable_torch)
        torch.empty(1)  # sets the pool up
        self.in_use_before = in_use()

    def tearDown(self):
        self.assertEqual(in_use(), self.in_use_before)
