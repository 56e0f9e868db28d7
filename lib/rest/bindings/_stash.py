"""Arrays at rest: compressed, or in a file."""

from __future__ import annotations

import os

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple, Union

    import numpy

# Codes of DLPack (DLDataTypeCode) by NumPy's kinds of elements.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_OPAQUE = (3, 0)


def element_type(dtype: numpy.dtype) -> Tuple[int, int]:
    """Returns the code and the bits of DLPack, which select how elements are compressed."""
    if dtype.name == "bfloat16":
        return 4, 16
    if not dtype.isnative or dtype.kind not in _CODES:
        return _OPAQUE
    return _CODES[dtype.kind], 8 * dtype.itemsize


def address_of(array: numpy.ndarray) -> int:
    """Returns where the elements are."""
    return array.__array_interface__["data"][0]


def order_of(array: numpy.ndarray) -> str:
    """Returns the order in which the elements are kept."""
    return "F" if array.flags.fnc else "C"


def check_array(what: str, array: numpy.ndarray) -> None:
    """Raises TypeError for anything but an array of plain data. Subclasses may hold more than their
    elements, such as a mask."""
    import numpy as np

    if type(array) not in (np.ndarray, np.memmap):
        raise TypeError(
            f"tensorpool: {what}: got a {type(array).__name__}, expected a numpy.ndarray"
        )
    if array.dtype.hasobject:
        raise TypeError(
            f"tensorpool: {what}: the elements are Python objects, expected plain data"
        )


class Stash:
    """The content of an array at rest; see `stash`."""

    def __init__(
        self,
        array: numpy.ndarray,
        name: str = "array",
        folder: Union[str, os.PathLike[str], None] = None,
    ) -> None:
        import numpy as np

        if not isinstance(name, str):
            raise TypeError(f"tensorpool: stash: name is {name!r}, expected a str")
        check_array(f"stash {name!r}", array)
        self.name = name
        self.dtype = array.dtype
        self.shape = array.shape
        self.nbytes = array.nbytes
        self._order = order_of(array)
        content = np.asarray(array, order=self._order)
        self._stash = _tensorpool.Stash(
            address_of(content),
            content.nbytes,
            name,
            *element_type(array.dtype),
            "" if folder is None else os.fspath(folder),
        )

    @property
    def nbytes_at_rest(self) -> int:
        """The bytes that the content takes, in memory or in the file; 0 once it was restored."""
        return self._stash.bytes_at_rest()

    def prefetch(self) -> None:
        """Requests that the system reads spilled content ahead. Returns at once."""
        self._stash.prefetch()

    def restore(self) -> numpy.ndarray:
        """Returns a new array with the same elements, bit for bit, and ends the stash.

        If it fails, the stash keeps its content. Raises MemoryError if there is no memory for the
        array, and RuntimeError if what rests is damaged, the file cannot be read, or the stash was
        restored before.
        """
        import numpy as np

        if not self._stash:
            raise RuntimeError(
                f"tensorpool: stash {self.name!r}: it was restored before, expected a stash with "
                "content"
            )
        array = np.empty(self.shape, self.dtype, order=self._order)
        self._stash.restore_to(address_of(array), array.nbytes)
        return array


def stash(
    array: numpy.ndarray, name: str = "array", folder: Union[str, os.PathLike[str], None] = None
) -> Stash:
    """Returns the content of an array at rest: compressed in memory, or in a file of a folder.

        weights = tensorpool.stash(weights)     # the array is freed with its last reference
        print(weights.nbytes, weights.nbytes_at_rest)
        weights = weights.restore()

    With a folder, which must be on a disk, the compressed bytes go to a file that has no name, is
    readable by this user only, and is gone when the process ends. Its bytes are not encrypted. The
    name appears in messages. Other threads must not write the array meanwhile.

    Any thread may use a stash, one at a time. Raises TypeError for anything but an array of plain
    data, MemoryError if there is no memory for what is compressed, RuntimeError if the folder cannot
    be used or the disk is full, and NotImplementedError if tensorpool was built without its component
    `stash`.
    """
    if not hasattr(_tensorpool, "Stash"):
        raise NotImplementedError(
            "tensorpool: stash: the library was built without it, expected TENSORPOOL_BUILD_STASH=ON"
        )
    return Stash(array, name, folder)
