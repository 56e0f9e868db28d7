"""Iterations, whose ends are marks on the timeline."""

from __future__ import annotations

from contextlib import contextmanager

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


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
