"""Limits for parts of a program."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from . import _tensorpool
from ._sizes import bytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Dict, List, Optional, Tuple, Type, Union


def _is_of(error: Optional[BaseException], refused_bytes: int) -> bool:
    """Returns whether an error is what NumPy raised for the refused request."""
    if not isinstance(error, MemoryError) or refused_bytes == 0:
        return False
    requested = getattr(error, "_total_size", None)  # of the error of a new array
    if requested is not None:
        return requested == refused_bytes
    return str(error) in ("", "cannot allocate memory for array")  # of `resize` and others


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
    """A limit for what is allocated in its `with` blocks, in any context; see `budget`.

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
        # The open blocks of all contexts, each with the frame that has the `with` block.
        self._blocks: List[Tuple[int, _tensorpool.OpenBudget]] = []

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
        self._blocks.append((id(sys._getframe(1)), _tensorpool.enter_budget(self)))
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._take_block(id(sys._getframe(1))).leave()
        text, refused_bytes = _tensorpool.take_refusal()
        if _is_of(error, refused_bytes):
            raise MemoryError(f"{error}\n{text.decode('utf-8', 'replace')}") from error

    def _take_block(self, frame: int) -> _tensorpool.OpenBudget:
        """Removes the block that ends: the latest of this frame, since an asynchronous generator may
        end in another context than it began in; or else that of this context; or else the latest."""
        of_context = _tensorpool.open_block_of(self)
        for suits in (
            lambda entry: entry[0] == frame,
            lambda entry: entry[1] is of_context,
            lambda entry: True,
        ):
            for entry in reversed(self._blocks):
                if suits(entry):
                    self._blocks.remove(entry)
                    return entry[1]
        raise RuntimeError(
            f"tensorpool: budget {self.name!r}: a `with` block ends, but none has begun"
        )


def budget(
    name: str,
    hard: Union[int, str, None] = None,
    soft: Union[int, str, None] = None,
    parent: Optional[Budget] = None,
) -> Budget:
    """Returns a new budget, a context manager that limits what is allocated from the pool in it:

        with tensorpool.budget("loader", "2GiB") as loader:
            images = load()             # arrays from the pool, after enable_numpy()
        print(loader.in_use)            # until they are freed, on whichever thread

    A request beyond the hard limit raises MemoryError. If the error leaves the `with` block on the
    thread that made the request, before another block begins there, its text says for each level
    what is in use, and what would have let the request fit. Sizes are bytes or
    texts such as "512MiB"; None means no limit.

    The budget of the enclosing `with` block is the parent, unless another one is given: what is
    charged to a budget is charged to its parents too. Of nested blocks only the innermost charges.
    There may be `with` blocks of one budget in several threads and tasks, each of which charges it.
    Raises TypeError or ValueError for limits that are no sizes, and for a soft limit above the hard
    one.

    A `with` block belongs to its context (contextvars): to an asyncio task, or to a thread outside
    of tasks, and to what starts in it with a copy of the context, such as other tasks and
    `asyncio.to_thread`. Blocks may end in any order. A generator has no context of its own: until its
    block ends, the code that uses the generator is in that block too. NumPy's arrays are charged by
    these rules. What others allocate, such as PyTorch and C code, is charged to the block that the
    thread was in when it last entered or left one, or made or freed an array of NumPy's; on other
    threads than that of the block, it is not charged.
    """
    if parent is None:
        parent = _tensorpool.current_budget()
    return Budget(name, hard, soft, parent)
