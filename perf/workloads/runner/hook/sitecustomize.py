"""Found by Python when it starts: puts the pool under the libraries that the work uses, as
`tensorpool run` does."""

import os

import tensorpool

for library in os.environ.get("WORKLOAD_LIBRARIES", "").split(","):
    if library:
        getattr(tensorpool, f"enable_{library}")()
