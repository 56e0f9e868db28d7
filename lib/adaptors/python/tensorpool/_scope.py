"""What a stretch of code allocates."""

from __future__ import annotations

import inspect
import threading
from contextlib import ContextDecorator
from dataclasses import dataclass

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Callable, Optional, Type, TypeVar

    _Function = TypeVar("_Function", bound=Callable)


@dataclass(frozen=True)
class ScopeFigures:
    """What one scope counted, on its thread, of all pools."""

    allocations: int = 0
    deallocations: int = 0
    requested_bytes: int = 0  #: asked for
    allocated_bytes: int = 0  #: handed out for it
    deallocated_bytes: int = 0  #: of the blocks that came back
    #: The most that was in use above what was when it began. Of blocks up to 64 KiB it may lag by
    #: what the thread keeps to use again.
    peak_bytes: int = 0

    @property
    def growth_bytes(self) -> int:
        """Negative where more was given back than taken."""
        return self.allocated_bytes - self.deallocated_bytes


class Scope(ContextDecorator):
    """Counts what the thread that enters it allocates from the pool and gives back until it leaves
    it again; see `scope`."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"tensorpool: scope: name is {name!r}, expected a str")
        self.name = name
        self._figures = ScopeFigures()
        self._open: Optional[_tensorpool.OpenScope] = None
        self._thread: Optional[threading.Thread] = None

    @property
    def figures(self) -> ScopeFigures:
        """Of the latest time it was entered: all of it once it has ended, until then so far."""
        if self._open is not None:
            return ScopeFigures(*self._open.figures())
        return self._figures

    def __enter__(self) -> "Scope":
        if self._open is not None:
            raise RuntimeError(
                f"tensorpool: scope {self.name!r} has begun and not ended, expected one at a time; "
                "make another with tensorpool.scope()"
            )
        self._thread = threading.current_thread()
        self._open = _tensorpool.OpenScope(self.name)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._open is None:
            raise RuntimeError(f"tensorpool: scope {self.name!r} ends, but has not begun")
        ended, self._open = self._open, None
        self._figures = ScopeFigures(*ended.figures())
        ended.end()
        began_on, self._thread = self._thread, None
        here = threading.current_thread()
        # An error on its way out says more.
        if kind is None and here is not began_on:
            raise RuntimeError(
                f"tensorpool: scope {self.name!r} began on thread {began_on.name!r} and ends on "
                f"{here.name!r}, expected the same: what a scope counts is its thread's"
            )

    def __call__(self, function: _Function) -> _Function:
        """A function that runs in a scope of this name, a new one for each call. TypeError for one
        whose body runs after the call: a generator or a coroutine."""
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
    """Counts what a stretch of code allocates, as a context manager or a decorator:

        with tensorpool.scope("forward") as forward:
            ...
        print(forward.figures.peak_bytes)

    Scopes nest. They are added up by name over all threads and stand in `statistics()["scopes"]`,
    wherever else pools are shown, and, when a peak rises, on the timeline; there is room for 64
    names of 47 bytes, others are added up as "other".

    A scope is its thread's. What a coroutine awaits inside one is counted only as far as it runs on
    that thread, and what other tasks allocate there meanwhile is counted too; where scopes of tasks
    end in another order than they nest in, each still counts up to its own end, and
    "out_of_order" of its name grows. A scope that ends on another thread than it began on raises
    RuntimeError; it has then ended, with what its own thread did.
    """
    return Scope(name)
