"""Memory for tensors from tensorpool's global pool.

    import tensorpool
    tensorpool.enable_numpy()           # arrays made from now on come from the pool
    tensorpool.enable_torch()           # PyTorch's CPU tensors too
    with tensorpool.scope("forward") as forward:
        ...
    print(forward.statistics.peak_bytes)

The process has one global pool, which C++ code in it uses too. It is set up on its first use from
environment variables such as TENSORPOOL_MAX_CAPACITY=2GiB. Sizes are bytes. Any thread may call any
function.
"""

from __future__ import annotations

import json

from . import _tensorpool
from ._budget import Budget, BudgetLimits, budget
from ._holders import enable_holders
from ._numpy import disable_numpy, enable_numpy, numpy_enabled, numpy_is_enabled
from ._planned import Planned, planned
from ._scope import Scope, ScopeStatistics, iteration, scope
from ._sizes import bytes_of
from ._stash import Stash, stash
from ._stashed_dict import StashedDict
from ._torch import disable_torch, enable_torch, torch_enabled, torch_is_enabled

# Defined as in the module typing, whose import would cost more than that of the whole package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import EllipsisType
    from typing import Any, Dict, Optional, Union

__all__ = [
    "Budget",
    "BudgetLimits",
    "Planned",
    "Scope",
    "ScopeStatistics",
    "Stash",
    "StashedDict",
    "budget",
    "disable_numpy",
    "disable_torch",
    "enable_holders",
    "enable_numpy",
    "enable_torch",
    "iteration",
    "limit",
    "numpy_enabled",
    "numpy_is_enabled",
    "planned",
    "scope",
    "stash",
    "statistics",
    "torch_enabled",
    "torch_is_enabled",
    "trim",
]


def statistics() -> Dict[str, Any]:
    """Returns the statistics of all objects of this process that hold tensorpool's memory.

    The keys are "pools", "arenas", "scratches", "devices", "planned", "budgets", "stashes" and
    "scopes". Each value is a list of dicts, each with its "name". The global pool is among the pools once it was
    used. "device_streams" and "threads" are lists too; further keys describe the process, such as
    "committed_bytes". Raises MemoryError if there is no memory for the statistics.
    """
    return json.loads(_tensorpool.snapshot_json().decode("utf-8", "replace"))


def limit(size: Union[int, str, None, EllipsisType] = ...) -> Optional[int]:
    """Returns the limit of the global pool's capacity in bytes, or None if it has none.

    A size as argument, such as 2**31 or "2GiB", sets the limit first; None removes it. If the
    capacity already exceeds the limit, free memory is released until it does not. Arrays in use
    stay, and the pool does not grow until enough of them are freed. An array that does not fit
    raises NumPy's MemoryError. Raises TypeError or ValueError for anything but a size above 0.
    """
    if size is None:
        _tensorpool.set_limit(0)
    elif size is not ...:
        _tensorpool.set_limit(bytes_of(size))
    return _tensorpool.limit() or None


def trim() -> int:
    """Gives the global pool's free memory back to the system and returns the bytes given back.

    This includes blocks in other threads' caches, except those of a thread in the middle of a call.
    """
    return _tensorpool.trim()
