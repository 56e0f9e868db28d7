"""Scopes that count the allocations of a section of code; iterations, whose ends are marks on the
timeline."""

from __future__ import annotations

import inspect
import threading
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Callable, Iterator, Optional, Type, TypeVar

    _Function = TypeVar("_Function", bound=Callable)


@dataclass(frozen=True)
class ScopeStatistics:
    """The statistics of one scope: of all pools, on the scope's thread."""

    allocations: int = 0
    deallocations: int = 0
    requested_bytes: int = 0  #: the requested sizes
    allocated_bytes: int = 0  #: the sizes of the blocks that served the requests
    deallocated_bytes: int = 0  #: the sizes of the freed blocks
    #: The most bytes in use above those at the beginning. For blocks up to 64 KiB it may lag by the
    #: blocks that the thread caches.
    peak_bytes: int = 0

    @property
    def growth_bytes(self) -> int:
        """The growth of the bytes in use; negative if more was freed than allocated."""
        return self.allocated_bytes - self.deallocated_bytes


class Scope(ContextDecorator):
    """Counts what a `with` block allocates and frees, on its thread; see `scope`."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"tensorpool: scope: name is {name!r}, expected a str")
        self.name = name
        self._statistics = ScopeStatistics()
        self._open: Optional[_tensorpool.OpenScope] = None
        self._thread: Optional[threading.Thread] = None

    @property
    def statistics(self) -> ScopeStatistics:
        """The statistics of the latest time it was entered; while it is open, those so far."""
        if self._open is not None:
            return ScopeStatistics(*self._open.statistics())
        return self._statistics

    def __enter__(self) -> "Scope":
        if self._open is not None:
            raise RuntimeError(
                f"tensorpool: scope {self.name!r} has begun and not ended, expected one at a time; "
                "make another with tensorpool.scope()"
            )
        self._thread = threading.current_thread()
        self._open = _tensorpool.enter_scope(self, self.name)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._open is None:
            raise RuntimeError(f"tensorpool: scope {self.name!r} ends, but has not begun")
        self._end()
        began_on, self._thread = self._thread, None
        here = threading.current_thread()
        # An exception that leaves the block takes precedence.
        if kind is None and here is not began_on:
            raise RuntimeError(
                f"tensorpool: scope {self.name!r} began on thread {began_on.name!r} and ends on "
                f"{here.name!r}, expected the same: what a scope counts is its thread's"
            )

    def _end(self) -> None:
        ended, self._open = self._open, None
        ended.leave()
        self._statistics = ScopeStatistics(*ended.statistics())
        ended.add_up()

    def __del__(self) -> None:
        if getattr(self, "_open", None) is not None:
            self._open.leave()
            self._open.add_up()

    def __call__(self, function: _Function) -> _Function:
        """Returns a function that runs in a new scope of this name at each call. Raises TypeError
        for a generator or a coroutine function, whose body runs after the call."""
        for runs_later in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        ):
            if runs_later(function):
                raise TypeError(
                    f"tensorpool: scope {self.name!r}: {function.__qualname__} runs after its call "
                    "has returned, expected a plain function; use `with` inside it"
                )
        return super().__call__(function)

    def _recreate_cm(self) -> "Scope":
        return Scope(self.name)


def scope(name: str) -> Scope:
    """Returns a context manager, also usable as a decorator, that counts what a section of code
    allocates:

        with tensorpool.scope("forward") as forward:
            ...
        print(forward.statistics.peak_bytes)

    Scopes nest. They are added up by name over all threads and appear in `statistics()["scopes"]`,
    wherever else pools are shown, and on the timeline when a peak rises. There is room for 64 names
    of 47 bytes; scopes with further names are added up as "other".

    A `with` block belongs to its context (contextvars), like that of a `budget`: to an asyncio task,
    or to a thread outside of tasks, and to tasks that start in it. It counts what these do on the
    thread on which it began, and not what other tasks do there. Blocks may end in any order. A
    generator has no context of its own: until its block ends, what the code that uses the generator
    does is counted too. NumPy's arrays are counted by these rules; what others allocate, such as
    PyTorch and C code, is counted where the thread was when it last entered or left a block, or
    made or freed an array of NumPy's. A block that ends on another thread than it began on raises
    RuntimeError. It has then ended. If its own thread was in it, "out_of_order" of its name grows,
    the sums of the name miss its counts, and that thread goes on charging the budget that the file
    in TENSORPOOL_BUDGETS has for the name.
    """
    return Scope(name)


@contextmanager
def iteration(name: str = "iteration") -> Iterator[None]:
    """Returns a context manager, also usable as a decorator, for one iteration of a loop:

        for batch in batches:
            with tensorpool.iteration("step"):
                ...

    Its end is a mark on the process's timeline, also if an exception ends it. `tensorpool leaks`
    compares the memory at these ends, and `tensorpool events` prints them. The first 23 bytes of
    the name are kept. Any thread may enter one. Raises TypeError if the name is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f"tensorpool: iteration: name is {name!r}, expected a str")
    try:
        yield
    finally:
        _tensorpool.mark_timeline(name)
