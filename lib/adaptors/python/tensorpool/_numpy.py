"""NumPy's arrays from the pool."""

from __future__ import annotations

import functools
import os
import threading
from contextlib import contextmanager
from contextvars import ContextVar

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

# The handler to put back, in the same context as the pool's.
_handler_before: ContextVar[Any] = ContextVar("tensorpool._handler_before")
_lock = threading.Lock()
_start_is_wrapped = False


def enable_numpy() -> None:
    """NumPy's arrays come from the global pool from now on, 64-byte aligned: those made in this
    context (contextvars) and in what begins in it, which are threads, executors' too, timers,
    tasks of asyncio, and processes made by fork. What began before does not change: not the threads
    that already run, idle ones of an executor too, nor running tasks. Nor do threads that C code or
    the module _thread begins, or processes that multiprocessing spawns: call it in them.

    Each array is resized and freed by whoever made it, whatever is enabled then. Called twice, it
    does nothing. What is too large for the pool raises NumPy's MemoryError: above
    TENSORPOOL_MAX_ALLOCATION, 8 GiB unless the environment says otherwise, or beyond `limit()`.
    Arrays of 4 MiB and more ask for huge pages where NumPy's own would, which is what its setting
    NUMPY_MADVISE_HUGEPAGE was when the pool was first enabled, unless TENSORPOOL_HUGE_PAGES is
    "never".

    Raises ImportError without a NumPy that has memory handlers (NEP 49), 1.22 or later.
    """
    if numpy_is_enabled():
        return
    try:
        before = _tensorpool.set_numpy_handler(_tensorpool.handler)
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"tensorpool: enable_numpy: NumPy cannot be used ({error}), expected 1.22 or later and "
            "no older than the one that tensorpool was compiled with"
        ) from error
    _handler_before.set(before)
    _wrap_thread_start()
    _follow_huge_pages()


def disable_numpy() -> None:
    """New arrays of this context come from where they came before `enable_numpy()`. Does nothing
    where that is not in force, such as where another handler has been set since."""
    if numpy_is_enabled():
        _tensorpool.set_numpy_handler(_handler_before.get())


def numpy_is_enabled() -> bool:
    """Whether an array that is made now, in this context, comes from the pool."""
    return _tensorpool.is_numpy_enabled()


@contextmanager
def numpy_enabled() -> Iterator[None]:
    """`with numpy_enabled():` enables for the block, and after it all is as it was before."""
    was_enabled = numpy_is_enabled()
    enable_numpy()
    try:
        yield
    finally:
        if not was_enabled:
            disable_numpy()


@functools.lru_cache(None)
def _follow_huge_pages() -> None:
    """Once: NumPy tells its setting only in exchange for another."""
    from numpy.core import multiarray

    exchange = getattr(multiarray, "_set_madvise_hugepage", None)
    if exchange is not None and os.environ.get("TENSORPOOL_HUGE_PAGES") != "never":
        wanted = exchange(False)
        exchange(wanted)
        _tensorpool.set_huge_pages(bool(wanted))


class _EnabledRun:
    """Stands in the place of a thread's `run` until that begins: a thread begins with an empty
    context. The class's `run` may be anybody's, so it is that of the instance."""

    def __init__(self, thread: threading.Thread) -> None:
        self._attributes = thread.__dict__
        self._before = thread.__dict__.get("run")
        self._run = thread.run
        self._attributes["run"] = self

    def __call__(self) -> None:
        self.remove()
        enable_numpy()
        self._run()

    def remove(self) -> None:
        if self._attributes.get("run") is not self:
            return
        if self._before is None:
            del self._attributes["run"]
        else:
            self._attributes["run"] = self._before


def _wrap_thread_start() -> None:
    """Once, and never back: others may have wrapped it again. Where the pool is not enabled it does
    as before."""
    global _start_is_wrapped
    with _lock:
        if _start_is_wrapped:
            return
        _start_is_wrapped = True
        start = threading.Thread.start

        @functools.wraps(start)
        def start_enabled(self: threading.Thread, *args: Any, **keywords: Any) -> None:
            if not numpy_is_enabled():
                return start(self, *args, **keywords)
            enabled_run = _EnabledRun(self)
            try:
                return start(self, *args, **keywords)
            except BaseException:
                enabled_run.remove()
                raise

        threading.Thread.start = start_enabled
