"""Runs NumPy's own tests with arrays from the pool. Arguments are those of pytest. Each test begins
with the pool enabled and must leave it so. Needs the Debian packages python3-pytest and
python3-hypothesis."""

import sys

from support import handler_name, tensorpool

try:
    import hypothesis  # NumPy's tests import it
    import pytest
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODULES = ["core", "lib", "linalg", "fft", "ma", "random", "matrixlib", "polynomial"]
# This module sets handlers and expects NumPy's own where it sets none.
LEFT_OUT = ["--ignore-glob=*/test_mem_policy.py"]


class Enabled:
    @pytest.fixture(autouse=True)
    def from_the_pool(self):
        tensorpool.enable_numpy()
        yield
        assert handler_name() == "tensorpool"


def main(arguments):
    tensorpool.enable_numpy()
    chosen = arguments or ["--pyargs", *(f"numpy.{module}" for module in MODULES), *LEFT_OUT]
    status = pytest.main(["-q", "-p", "no:cacheprovider", *chosen], plugins=[Enabled()])
    statistics = tensorpool.statistics()["pools"][0]
    print(f"{statistics['allocations']} allocations of {statistics['requested_bytes']} bytes")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
