"""Code shared by the tests of the Python package. A program that imports it exits with 77, which
ctest counts as skipped, if NumPy or the package is missing."""

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


def pool_statistics():
    """Returns the statistics of the global pool."""
    pools = tensorpool.statistics()["pools"]
    return next(pool for pool in pools if pool["name"] == "global")


def in_use():
    """Returns the bytes in use of the global pool, which may not be set up yet."""
    gc.collect()
    return sum(pool["in_use_bytes"] for pool in tensorpool.statistics()["pools"])


def from_pool(array=None):
    """Returns whether an array comes from the pool; without an argument, whether a new one would."""
    return (handler_name() if array is None else handler_name(array)) == "tensorpool"


def run_python(code):
    """Runs code in a new interpreter, which must succeed, and returns its output."""
    done = subprocess.run([sys.executable, "-B", "-c", code], text=True, capture_output=True)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class EnabledCase(unittest.TestCase):
    """Enables the pool for NumPy in each test, which must not change the bytes in use."""

    def setUp(self):
        tensorpool.enable_numpy()
        self.addCleanup(tensorpool.disable_numpy)
        np.empty(1)  # sets the pool up
        self.in_use_before = in_use()

    def tearDown(self):
        self.assertEqual(in_use(), self.in_use_before)
