"""A dict of arrays that puts those used least recently to rest."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import MutableMapping

from . import _tensorpool
from ._budget import Budget
from ._sizes import bytes_of
from ._stash import address_of, check_array, element_type, order_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Hashable, Iterator, Optional, Tuple, Union

    import numpy

    # The key in the map, and what the array is like: its dtype, shape and order.
    _Entry = Tuple[int, numpy.dtype, Tuple[int, ...], str]


class StashedDict(MutableMapping):
    """A dict of arrays that keeps those used most recently in memory and the others compressed, or
    in a file:

        features = tensorpool.StashedDict("features", memory="1GiB", folder="/a/disk")
        features["a"] = array           # copies it
        print(features["a"].sum())      # restored if it was at rest
        features["a"][0] = 1            # changes what the dict holds
        print(features.read("a").sum())  # the fastest way for arrays that seldom change

    An array that is read stays in memory while the program refers to it or to a view of it. When
    `memory` is exceeded, or the budget needs memory for any request, the arrays used least recently
    are compressed. With a folder, which must be on a disk, those that do not shrink are written to
    a file that has no name and is gone when the process ends; its bytes are not encrypted. Without
    one they stay in memory. All arrays come back bit for bit.

    `dtype` is that of most arrays, and selects how they are compressed. Sizes are bytes or texts such
    as "1GiB". Any thread may use the dict. An array that cannot be put to rest stays in memory, and
    `last_failure` says why. Raises TypeError for anything but arrays of plain data, MemoryError if
    there is no memory although all other arrays were put to rest, RuntimeError for errors of the
    file, and NotImplementedError if tensorpool was built without its component `stash`.
    """

    __eq__ = object.__eq__  # comparing would restore all arrays
    __hash__ = object.__hash__

    def __init__(
        self,
        name: str = "dict",
        memory: Union[int, str, None] = None,
        folder: Union[str, os.PathLike[str], None] = None,
        budget: Optional[Budget] = None,
        dtype: Any = None,
    ) -> None:
        if not hasattr(_tensorpool, "StashedMap"):
            raise NotImplementedError(
                "tensorpool: StashedDict: the library was built without it, expected "
                "TENSORPOOL_BUILD_STASH=ON"
            )
        import numpy as np

        if not isinstance(name, str):
            raise TypeError(f"tensorpool: StashedDict: name is {name!r}, expected a str")
        if budget is not None and not isinstance(budget, Budget):
            raise TypeError(
                f"tensorpool: StashedDict {name!r}: budget is {budget!r}, expected a Budget"
            )
        self.name = name
        self.budget = budget
        self._map = _tensorpool.StashedMap(
            name,
            None if budget is None else budget._budget,
            0 if memory is None else bytes_of(memory),
            "" if folder is None else os.fspath(folder),
            *element_type(np.dtype(np.uint8 if dtype is None else dtype)),
        )
        self._numbers = itertools.count()
        self._entries: Dict[Hashable, _Entry] = {}
        self._lock = threading.Lock()  # of changes to the entries

    def __setitem__(self, key: Hashable, array: numpy.ndarray) -> None:
        import numpy as np

        check_array(f"StashedDict {self.name!r}", array)
        order = order_of(array)
        content = np.asarray(array, order=order)
        number = next(self._numbers)
        hash(key)  # an error of it comes first
        self._map.put(number, address_of(content), content.nbytes)
        with self._lock:
            before = self._entries.get(key)
            self._entries[key] = (number, array.dtype, array.shape, order)
        if before is not None:
            self._map.erase(before[0])

    def __getitem__(self, key: Hashable) -> numpy.ndarray:
        return self._pinned(key, self._map.get)

    def read(self, key: Hashable) -> numpy.ndarray:
        """Returns an array like `self[key]`, but one that cannot be written. An array that was only
        read stays compressed or in its file as well, and needs no time to go to rest again."""
        return self._pinned(key, self._map.read)

    def _pinned(self, key: Hashable, pin_of: Callable[[int], Any]) -> numpy.ndarray:
        import numpy as np

        entry = self._entries[key]
        pin = pin_of(entry[0])
        while not pin:  # another thread has dropped or replaced it
            before, entry = entry, self._entries[key]
            if entry is before:
                raise KeyError(key)
            pin = pin_of(entry[0])
        _, dtype, shape, order = entry
        return np.ndarray(shape, dtype, buffer=pin, order=order)

    def __delitem__(self, key: Hashable) -> None:
        with self._lock:
            before = self._entries.pop(key)
        self._map.erase(before[0])

    # The functions of MutableMapping would restore the array first.
    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drops all arrays, without restoring them."""
        with self._lock:
            before, self._entries = self._entries, {}
        for number, *_ in before.values():
            self._map.erase(number)

    def prefetch(self, key: Hashable) -> None:
        """Requests that the system reads an array ahead if it is in a file. Returns at once."""
        self._map.prefetch(self._entries[key][0])

    @property
    def statistics(self) -> Dict[str, Any]:
        """The state: "entries", "memory_bytes" of arrays in memory, "stashed_bytes" of those at rest,
        the "compressed_bytes" and "spilled_bytes" that these take, "hits", "misses" and others."""
        return self._map.statistics()

    @property
    def last_failure(self) -> str:
        """Why the latest array could not be put to rest; "" if there was none."""
        return self._map.last_failure().decode("utf-8", "replace")
