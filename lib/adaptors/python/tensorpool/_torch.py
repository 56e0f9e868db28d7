"""PyTorch's tensors from the pool."""

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
    """PyTorch's CPU tensors come from the global pool from now on, 64-byte aligned: in the whole
    process, on all threads, and in processes made by fork; in those that multiprocessing spawns,
    call it again. PyTorch may be imported before or after. Call it while no other thread makes
    tensors, for so PyTorch wants it.

    Each tensor is resized and freed by whoever made it, whatever is enabled then. Called twice, it
    does nothing. Tensors over NumPy's arrays, shared memory or mapped files lie where they did
    before, as do buffers that PyTorch's functions take from malloc. What is too large for the pool
    raises the RuntimeError that PyTorch raises without it, "can't allocate memory", with figures.

    Raises ImportError where PyTorch is missing, or is not the one that tensorpool was compiled with,
    and RuntimeError where somebody else has an allocator in force that may not be replaced.
    """
    library = _load()
    if not library.tensorpool_torch_enable():
        raise RuntimeError(
            "tensorpool: enable_torch: PyTorch has an allocator of a higher priority already, "
            "expected its own"
        )


def disable_torch() -> None:
    """New tensors come from where they came before `enable_torch()`. Does nothing where that is not
    in force, such as where another allocator has been set since."""
    if _library is not None:
        _library.tensorpool_torch_disable()


def torch_is_enabled() -> bool:
    """Whether a CPU tensor that is made now comes from the pool."""
    return _library is not None and _library.tensorpool_torch_is_enabled() == 1


@contextmanager
def torch_enabled() -> Iterator[None]:
    """`with torch_enabled():` enables for the block, and after it all is as it was before."""
    was_enabled = torch_is_enabled()
    enable_torch()
    try:
        yield
    finally:
        if not was_enabled:
            disable_torch()


def _load() -> ctypes.CDLL:
    """The library that joins pool and PyTorch. It needs neither an imported PyTorch nor all of it:
    only libc10, which an import takes then too."""
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
    # A symbol of libtensorpool's, found through the extension that needs it.
    symbol = ctypes.CDLL(_tensorpool.__file__).tensorpool_version
    pool = _file_of(ctypes.cast(symbol, ctypes.c_void_p).value)
    return os.path.join(os.path.dirname(pool), _NAME)


def _check_is_joined_to(torch: Path, library: ctypes.CDLL) -> None:
    """Another PyTorch than the one of the compiler's has a libc10 of its own, and would not notice
    what is registered with ours."""
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
    """Of the library that lies there."""
    info = _SymbolInfo()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info)):
        raise ImportError(f"tensorpool: no library lies at {address:#x}, expected one")
    return os.fsdecode(info.file)
