"""Loops whose larger arrays and tensors are served from a memory plan."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager

from . import _tensorpool
from ._sizes import bytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Dict, Iterator, Optional, Type, Union

_loops: Dict[str, "Planned"] = {}
_loops_lock = threading.Lock()


class Planned:
    """A loop whose iterations are served from a plan; see `planned`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop = _tensorpool.PlannedLoop(name)
        self._min_bytes = _tensorpool.default_min_bytes
        self._used = threading.Lock()  # held during an iteration, and by `save` and `load`
        self._thread: Optional[threading.Thread] = None  # that began the iteration

    @property
    def statistics(self) -> Dict[str, Any]:
        """The statistics of the loop's planned arena, as in `statistics()["planned"]`."""
        return json.loads(self._loop.statistics_json().decode("utf-8", "replace"))

    def _take(self, call: str) -> None:
        if not self._used.acquire(blocking=False):
            thread = self._thread
            where = "" if thread is None else f" on thread {thread.name!r}"
            raise RuntimeError(
                f"tensorpool: planned {self.name!r}: {call}: an iteration is under way{where}, "
                "expected none"
            )

    def __enter__(self) -> "Planned":
        self._take("begin")
        try:
            self._thread = threading.current_thread()
            self._loop.begin(self, self._min_bytes)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._thread is None:
            raise RuntimeError(
                f"tensorpool: planned {self.name!r}: an iteration ends, but none has begun; expected "
                "one"
            )
        self._end()

    def _end(self) -> None:
        try:
            self._loop.end()
        finally:
            self._thread = None
            self._used.release()

    @contextmanager
    def join(self) -> Iterator[None]:
        """Returns a context manager with which another thread takes part in the current iteration:
        what it allocates in the `with` block is served from the same plan. It helps only if the
        order of requests, across the threads, is the same in each iteration. Raises RuntimeError if
        no iteration is under way; the iteration must outlast the `with` block."""
        block = self._loop.join(self)
        try:
            yield
        finally:
            block.leave()

    def save(self, path: str) -> None:
        """Writes the plan to a file. Raises RuntimeError if there is none or the file cannot be
        written, or inside an iteration."""
        self._take("save")
        try:
            self._loop.save(path)
        finally:
            self._used.release()

    def load(self, path: str) -> None:
        """Reads a plan that `save` wrote, so that the next iteration is served from it. Raises
        RuntimeError if the file is missing or damaged, or inside an iteration."""
        self._take("load")
        try:
            self._loop.load(path)
        finally:
            self._used.release()


def planned(name: str, min_bytes: Union[int, str, None] = None) -> Planned:
    """Returns the loop of this name, a context manager; each `with` block is one iteration:

        for batch in batches:
            with tensorpool.planned("step"):
                train(batch)

    The pool serves the first two iterations: the first one often makes what later ones keep, such
    as gradients, and the larger requests of the second one are recorded. From them a plan is made,
    which packs all buffers of an iteration into close to the least memory. The following iterations
    are served from the plan's memory. Requests that differ from it, and those whose buffers outlive
    an iteration, are served by the pool as before.

    This concerns requests above 64 KiB that the thread makes of the global pool: NumPy's arrays
    after `enable_numpy()`, PyTorch's tensors after `enable_torch()`, and all of malloc under
    `tensorpool run`. `min_bytes`, such as 2**20 or "1MiB", raises that threshold. Other threads
    stay with the pool, unless they use `join`. Raises ValueError if `min_bytes` is too small, and
    NotImplementedError if tensorpool was built without its component `planning`.

    An iteration, and the `with` block of `join`, belongs to its context (contextvars), like the
    block of a `budget`: other tasks of the thread stay with the pool. Iterations of different loops
    may end in any order and on any thread. For what others than NumPy allocate, the thread is where
    it was when it last entered or left a block, or made or freed an array of NumPy's.
    """
    if not isinstance(name, str):
        raise TypeError(f"tensorpool: planned: name is {name!r}, expected a str")
    if not hasattr(_tensorpool, "PlannedLoop"):
        raise NotImplementedError(
            "tensorpool: planned: the library was built without planning, expected "
            "TENSORPOOL_BUILD_PLANNING=ON"
        )
    with _loops_lock:
        loop = _loops.get(name)
        if loop is None:
            loop = _loops[name] = Planned(name)
    if min_bytes is not None:
        smallest = _tensorpool.default_min_bytes
        wanted = bytes_of(min_bytes)
        if wanted < smallest:
            raise ValueError(
                f"tensorpool: planned {name!r}: min_bytes is {wanted}, expected at least {smallest}"
            )
        loop._min_bytes = wanted
    return loop
