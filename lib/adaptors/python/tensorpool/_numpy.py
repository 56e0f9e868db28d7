"""Memory of NumPy's arrays from the pool."""

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

# The handler to restore, stored in the context in which the pool's is set.
_handler_before: ContextVar[Any] = ContextVar("tensorpool._handler_before")
_lock = threading.Lock()
_start_is_wrapped = False


def enable_numpy() -> None:
    """Makes NumPy's arrays come from the global pool from now on, aligned to 64 bytes.

    This applies to arrays made in this context (contextvars) and in everything that starts in it:
    threads, also those of executors, timers, asyncio tasks, and forked processes. It does not apply
    to threads and tasks that already run, idle threads of an executor included. Nor does it apply
    to threads started by C code or the module _thread, and to processes that multiprocessing
    spawns: call it in them.

    Each array is resized and freed by the allocator that made it. A second call does nothing. A
    request that is too large raises NumPy's MemoryError: one above TENSORPOOL_MAX_ALLOCATION (8 GiB
    by default) or beyond `limit()`. Arrays of at least 4 MiB request huge pages if NumPy's own
    would: its setting NUMPY_MADVISE_HUGEPAGE is read when the pool is first enabled.
    TENSORPOOL_HUGE_PAGES=never prevents it.

    Raises ImportError without NumPy 1.22 or later, which has memory handlers (NEP 49).
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
    """Makes new arrays of this context come from the allocator that `enable_numpy()` replaced. Does
    nothing if the pool is not enabled, or if another handler was set since."""
    if numpy_is_enabled():
        _tensorpool.set_numpy_handler(_handler_before.get())


def numpy_is_enabled() -> bool:
    """Returns whether an array that is made now, in this context, comes from the pool."""
    return _tensorpool.is_numpy_enabled()


@contextmanager
def numpy_enabled() -> Iterator[None]:
    """Enables the pool for a `with` block and restores the previous state after it."""
    was_enabled = numpy_is_enabled()
    enable_numpy()
    try:
        yield
    finally:
        if not was_enabled:
            disable_numpy()


@functools.lru_cache(None)
def _follow_huge_pages() -> None:
    """Copies NumPy's setting for huge pages, once. NumPy returns it only when it is set."""
    from numpy.core import multiarray

    exchange = getattr(multiarray, "_set_madvise_hugepage", None)
    if exchange is not None and os.environ.get("TENSORPOOL_HUGE_PAGES") != "never":
        wanted = exchange(False)
        exchange(wanted)
        _tensorpool.set_huge_pages(bool(wanted))


class _EnabledRun:
    """Replaces a thread's `run` until the thread begins, because threads begin with an empty
    context. It is set on the instance, because the class may belong to other code."""

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
    """Wraps `Thread.start`, once and for good, because other code may wrap it again. Where the pool
    is not enabled, the wrapper only calls the original."""
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
