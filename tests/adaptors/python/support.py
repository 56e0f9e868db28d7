"""What the tests of the Python package share. A program that imports it ends with 77, which ctest
counts as skipped, where NumPy or the package is missing."""

import gc
import subprocess
import sys
import unittest

try:
    import numpy as np
    import tensorpool
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

handler_name = np.core.multiarray.get_handler_name


def pool_figures():
    """Of the global pool."""
    pools = tensorpool.statistics()["pools"]
    return next(pool for pool in pools if pool["name"] == "global")


def in_use():
    """Bytes of the global pool, which may not have been used yet."""
    gc.collect()
    return sum(pool["in_use_bytes"] for pool in tensorpool.statistics()["pools"])


def from_pool(array=None):
    """Whether an array comes from the pool; without one, whether a new one would."""
    return (handler_name() if array is None else handler_name(array)) == "tensorpool"


def run_python(code):
    """A program of its own, which must end well; returns what it printed."""
    done = subprocess.run([sys.executable, "-B", "-c", code], text=True, capture_output=True)
    if done.returncode != 0:
        raise AssertionError(f"ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class EnabledCase(unittest.TestCase):
    """NumPy comes from the pool in each test, which must leave in use what it found."""

    def setUp(self):
        tensorpool.enable_numpy()
        self.addCleanup(tensorpool.disable_numpy)
        np.empty(1)  # sets the pool up
        self.in_use_before = in_use()

    def tearDown(self):
        self.assertEqual(in_use(), self.in_use_before)
