"""Memory for tensors, from tensorpool's global pool.

    import tensorpool
    tensorpool.enable_numpy()           # arrays made from now on come from the pool
    tensorpool.enable_torch()           # PyTorch's tensors too
    with tensorpool.scope("forward") as forward:
        ...
    print(forward.figures.peak_bytes)

The pool is that of the process: what C++ code in it allocates comes from the same. It is set up on
its first use from variables of the environment, TENSORPOOL_MAX_CAPACITY=2GiB and so on. Sizes are
bytes. All functions may be called from any thread.
"""

from __future__ import annotations

import json

from . import _tensorpool
from ._numpy import disable_numpy, enable_numpy, numpy_enabled, numpy_is_enabled
from ._scope import Scope, ScopeFigures, scope
from ._sizes import bytes_of
from ._torch import disable_torch, enable_torch, torch_enabled, torch_is_enabled

# As typing has it, which would be most of what importing this package costs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import EllipsisType
    from typing import Any, Dict, Optional, Union

__all__ = [
    "Scope",
    "ScopeFigures",
    "disable_numpy",
    "disable_torch",
    "enable_numpy",
    "enable_torch",
    "limit",
    "numpy_enabled",
    "numpy_is_enabled",
    "scope",
    "statistics",
    "torch_enabled",
    "torch_is_enabled",
    "trim",
]


def statistics() -> Dict[str, Any]:
    """The figures of everything in this process that holds memory of tensorpool's: lists of dicts
    under "pools", "arenas", "scratches", "devices", "planned" and "scopes", each with its "name".
    The global pool is among the pools once it was used. Raises MemoryError when there is none for
    the figures."""
    return json.loads(_tensorpool.snapshot_json().decode("utf-8", "replace"))


def limit(size: Union[int, str, None, EllipsisType] = ...) -> Optional[int]:
    """The limit of the global pool's capacity, None where it has none. Given a size, such as 2**31
    or "2GiB", it is set to that first, and with None taken away.

    Is there more already, free memory is given back first; arrays in use stay, and the pool does
    not grow until enough of them have gone. An array that does not fit raises NumPy's own
    MemoryError. Raises TypeError or ValueError for what is no size above 0.
    """
    if size is None:
        _tensorpool.set_limit(0)
    elif size is not ...:
        _tensorpool.set_limit(bytes_of(size))
    return _tensorpool.limit() or None


def trim() -> int:
    """Gives back to the system what is free, except what other threads hold to use again. Returns
    the bytes given back."""
    return _tensorpool.trim()
