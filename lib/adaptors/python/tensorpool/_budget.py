"""Limits for parts of a program."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

from . import _tensorpool
from ._sizes import bytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Dict, List, Optional, Tuple, Type, Union

_of_thread = threading.local()


def _open_budgets() -> List[Tuple["Budget", _tensorpool.OpenBudgetScope]]:
    """Returns the budgets whose `with` blocks the calling thread is in, the innermost last."""
    if not hasattr(_of_thread, "budgets"):
        _of_thread.budgets = []
    return _of_thread.budgets


def _bytes_or_0(size: Union[int, str, None]) -> int:
    return 0 if size is None else bytes_of(size)


@dataclass(frozen=True)
class BudgetLimits:
    """The limits of a budget in bytes; None means no limit."""

    #: What is charged never exceeds it.
    hard: Optional[int] = None
    #: Before it is exceeded, holders in C++ that registered are asked to give memory.
    soft: Optional[int] = None


class Budget:
    """A limit for what is allocated in its `with` blocks, on any thread; see `budget`.

    When the object ends, its limit does too: what is still charged to it remains with its parent.
    """

    def __init__(
        self,
        name: str,
        hard: Union[int, str, None] = None,
        soft: Union[int, str, None] = None,
        parent: Optional["Budget"] = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"tensorpool: budget: name is {name!r}, expected a str")
        if parent is not None and not isinstance(parent, Budget):
            raise TypeError(f"tensorpool: budget {name!r}: parent is {parent!r}, expected a Budget")
        self.name = name
        self.parent = parent
        above = None if parent is None else parent._budget
        self._budget = _tensorpool.Budget(above, name, _bytes_or_0(hard), _bytes_or_0(soft))

    @property
    def in_use(self) -> int:
        """The bytes charged to this budget and to those below it."""
        return self._budget.in_use()

    @property
    def limits(self) -> BudgetLimits:
        """The present limits."""
        return BudgetLimits(*(size or None for size in self._budget.limits()))

    def set_limits(
        self, hard: Union[int, str, None] = None, soft: Union[int, str, None] = None
    ) -> None:
        """Replaces both limits; None means none. If more is charged than the new hard limit, arrays
        stay, and no more is charged until enough of them are freed. Raises ValueError if the soft
        limit exceeds the hard one, and changes nothing then."""
        self._budget.set_limits(_bytes_or_0(hard), _bytes_or_0(soft))

    @property
    def statistics(self) -> Dict[str, Any]:
        """The budget's state: its limits, "in_use_bytes", "peak_bytes", "refusals" and others."""
        return json.loads(self._budget.statistics_json().decode("utf-8", "replace"))

    def __enter__(self) -> "Budget":
        _tensorpool.take_refusal()  # of before
        _open_budgets().append((self, _tensorpool.OpenBudgetScope(self._budget)))
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        opened = _open_budgets()
        if not opened or opened[-1][0] is not self:
            found = f"in that of {opened[-1][0].name!r}" if opened else "in none"
            raise RuntimeError(
                f"tensorpool: budget {self.name!r}: its `with` block ends on thread "
                f"{threading.current_thread().name!r}, which is {found}; expected the innermost "
                "block of the same thread"
            )
        opened.pop()[1].end()
        refusal = _tensorpool.take_refusal().decode("utf-8", "replace")
        if refusal and isinstance(error, MemoryError):
            raise MemoryError(f"{error}\n{refusal}") from error


def budget(
    name: str,
    hard: Union[int, str, None] = None,
    soft: Union[int, str, None] = None,
    parent: Optional[Budget] = None,
) -> Budget:
    """Returns a new budget, a context manager that limits what the thread allocates from the pool:

        with tensorpool.budget("loader", "2GiB") as loader:
            images = load()             # arrays from the pool, after enable_numpy()
        print(loader.in_use)            # until they are freed, on whichever thread

    A request beyond the hard limit raises MemoryError. If the error leaves the `with` block, its text
    says for each level what is in use, and what would have let the request fit. Sizes are bytes or
    texts such as "512MiB"; None means no limit.

    The budget of the enclosing `with` block of the thread is the parent, unless another one is given:
    what is charged to a budget is charged to its parents too. Of nested blocks only the innermost
    charges. Several threads may be in `with` blocks of one budget, each of which charges it. Raises
    TypeError or ValueError for limits that are no sizes, and for a soft limit above the hard one.
    """
    opened = _open_budgets()
    if parent is None and opened:
        parent = opened[-1][0]
    return Budget(name, hard, soft, parent)
