"""Memory of PyTorch's CPU tensors from the pool."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Optional

_NAME = "libtensorpool_torch.so"
_library: Optional[ctypes.CDLL] = None


def enable_torch() -> None:
    """Makes PyTorch's CPU tensors come from the global pool from now on, aligned to 64 bytes.

    This applies to the whole process, all its threads, and forked processes. Call it again in
    processes that multiprocessing spawns. PyTorch may be imported before or after. As PyTorch
    requires, no other thread may make tensors during the call.

    Each tensor is resized and freed by the allocator that made it. A second call does nothing.
    Tensors over NumPy's arrays, shared memory or mapped files are not affected, nor are buffers
    that PyTorch's functions take from malloc. A request that is too large raises PyTorch's own
    RuntimeError, "can't allocate memory", with the pool's explanation.

    Raises ImportError if PyTorch is missing or is not the one that tensorpool was compiled with,
    and RuntimeError if another allocator is registered that must not be replaced.
    """
    if not _load().tensorpool_torch_enable():
        raise RuntimeError(
            "tensorpool: enable_torch: PyTorch has an allocator of a higher priority already, "
            "expected its own"
        )


def disable_torch() -> None:
    """Makes new tensors come from the allocator that `enable_torch()` replaced. Does nothing if the
    pool is not enabled, or if another allocator was set since."""
    if _library is not None:
        _library.tensorpool_torch_disable()


def torch_is_enabled() -> bool:
    """Returns whether a CPU tensor that is made now comes from the pool."""
    return _library is not None and _library.tensorpool_torch_is_enabled() == 1


@contextmanager
def torch_enabled() -> Iterator[None]:
    """Enables the pool for a `with` block and restores the previous state after it."""
    was_enabled = torch_is_enabled()
    enable_torch()
    try:
        yield
    finally:
        if not was_enabled:
            disable_torch()


def _load() -> ctypes.CDLL:
    """Returns the library with the allocator for PyTorch. It needs only libc10 of PyTorch, which a
    later import of PyTorch uses too, and no imported PyTorch."""
    global _library
    if _library is None:
        torch = _folder_of_torch()
        path = _beside_the_pool()
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(
                f"tensorpool: enable_torch: {path} cannot be loaded ({error}), expected the library "
                "that is built where libtorch-dev is found"
            ) from error
        _check_is_joined_to(torch, library)
        _library = library
    return _library


def _folder_of_torch() -> Path:
    imported = sys.modules.get("torch")
    spec = imported.__spec__ if imported else _spec_of_torch()
    if spec is None or spec.origin is None:
        raise ImportError(
            f"tensorpool: enable_torch: {sys.executable} has no PyTorch, expected the Debian package "
            "python3-torch"
        )
    return Path(spec.origin).parent


def _spec_of_torch():
    import importlib.util

    try:
        return importlib.util.find_spec("torch")
    except ValueError:  # sys.modules["torch"] is None
        return None


def _beside_the_pool() -> str:
    # A symbol of libtensorpool, found through the extension module that links it.
    symbol = ctypes.CDLL(_tensorpool.__file__).tensorpool_version
    pool = _file_of(ctypes.cast(symbol, ctypes.c_void_p).value)
    return os.path.join(os.path.dirname(pool), _NAME)


def _check_is_joined_to(torch: Path, library: ctypes.CDLL) -> None:
    """Raises ImportError if this PyTorch has another libc10 than the one that the library was
    linked to: an allocator registered in the other would have no effect."""
    function = library.tensorpool_torch_address_in_c10
    function.restype = ctypes.c_void_p
    joined_to, expected = _file_of(function()), torch / "lib" / "libc10.so"
    if expected.exists() and not os.path.samefile(joined_to, expected):
        raise ImportError(
            f"tensorpool: enable_torch: PyTorch in {torch} uses {expected}, expected {joined_to}, "
            "which tensorpool was compiled with"
        )


class _SymbolInfo(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def _file_of(address: int) -> str:
    """Returns the path of the library that contains the address."""
    info = _SymbolInfo()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info)):
        raise ImportError(f"tensorpool: no library lies at {address:#x}, expected one")
    return os.fsdecode(info.file)
