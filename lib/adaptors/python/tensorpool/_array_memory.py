"""The memory of NumPy's arrays and PyTorch's tensors, which several of them may share.

Only modules that the program has imported are used. Attributes are read with the descriptors of the
base classes, so that no code of a program's own class runs."""

from __future__ import annotations

import contextlib
import heapq
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ContextManager, Dict, List, Set, Tuple

_MEMBERS = 16  # of a memory that are kept
_BETWEEN_LOOKS = 1024  # arrays


class Memory:
    """Memory that some arrays use. `members` are they, each with the attribute through which it
    leads to the memory: ".base" for a view, ".grad" for the tensor of a gradient."""

    __slots__ = ("bytes", "shown", "shown_bytes", "members")

    def __init__(self, size: int) -> None:
        self.bytes = size
        self.shown: Any = None  # the array that describes it: the largest
        self.shown_bytes = -1
        self.members: List[Tuple[Any, str]] = []

    def add(self, member: Any, attribute: str = "") -> None:
        if len(self.members) < _MEMBERS:
            self.members.append((member, attribute))

    def show(self, array: Any, size: int) -> None:
        if size > self.shown_bytes:
            self.shown, self.shown_bytes = array, size


class ArrayMemory:
    """Finds the memory of arrays and tensors, by NumPy and PyTorch as far as they are imported."""

    def __init__(self) -> None:
        array = getattr(sys.modules.get("numpy"), "ndarray", None)
        bindings = getattr(sys.modules.get("torch"), "_C", None)
        self._tensor = getattr(bindings, "_TensorBase", None)
        self.array_types = _with_subclasses(array)
        self.tensor_types = _with_subclasses(self._tensor)
        #: The context in which tensors are looked at: without the functions of their classes.
        self.context: ContextManager[Any] = contextlib.nullcontext()
        self.memories: Dict[Any, Memory] = {}
        if self.array_types:
            self._base = array.base.__get__
            self._array_bytes = array.nbytes.__get__
            self._interface = array.__array_interface__.__get__
            self._array_shape, self._array_type = array.shape.__get__, array.dtype.__get__
        if self.tensor_types:
            self.context = bindings.DisableTorchFunction()
            self._storage = getattr(self._tensor, "untyped_storage", None) or self._tensor._storage

    def add(self, arrays: List[Any], tensors: List[Any], until: int) -> None:
        """Adds arrays and tensors; stops at the time `until` (time.monotonic_ns)."""
        for array in arrays:
            self._add_array(array)
        for i, tensor in enumerate(tensors):
            if i % _BETWEEN_LOOKS == 0 and time.monotonic_ns() > until:
                return
            self._add_tensor(tensor)

    def largest(self, count: int) -> List[Memory]:
        """Returns the largest ones. A tensor over an array, which has no attribute for it, has the
        same address."""
        most = heapq.nlargest(2 * count, self.memories.values(), key=lambda one: one.bytes)
        by_address: Dict[Any, Memory] = {}
        for memory in most:
            known = by_address.setdefault(self._address(memory.shown), memory)
            if known is not memory:
                known.members.extend(memory.members)
        return list(by_address.values())[:count]

    def description(self, memory: Memory) -> Dict[str, Any]:
        """Returns bytes, type, shape, element type and device."""
        shown = memory.shown
        device = "cpu"
        if type(shown) in self.array_types:
            shape, dtype = self._array_shape(shown), str(self._array_type(shown))
        else:
            shape = self._tensor.shape.__get__(shown)
            dtype = str(self._tensor.dtype.__get__(shown)).replace("torch.", "")
            device = str(self._tensor.device.__get__(shown))
        return {
            "bytes": memory.bytes,
            "type": name_of_type(type(shown)),
            "shape": [int(one) for one in shape],
            "dtype": clean(dtype, 60),
            "device": device,
        }

    def _add_array(self, array: Any) -> None:
        owner, base = array, self._base(array)
        while type(base) in self.array_types:
            owner, base = base, self._base(base)
        if type(base) in self.tensor_types:
            self._add_tensor(base, array, ".base")
            return
        if type(base).__name__ == "mmap":  # of a file
            return
        size = self._array_bytes(owner)
        memory = self.memories.get(id(owner if base is None else base))
        if memory is None:
            memory = self.memories[id(owner if base is None else base)] = Memory(size)
        memory.bytes = max(memory.bytes, size)
        memory.show(owner, size)
        memory.add(array, "" if array is owner else ".base")

    def _add_tensor(self, tensor: Any, member: Any = None, attribute: str = "") -> None:
        """Sparse tensors, and others without a storage, are left out."""
        try:
            storage = self._storage(tensor)
            address, size = storage.data_ptr(), storage.nbytes()
            shown_bytes = self._tensor.numel(tensor) * self._tensor.element_size(tensor)
        except Exception:
            return
        if address == 0:
            return
        key = ("storage", address)
        memory = self.memories.get(key)
        if memory is None:
            memory = self.memories[key] = Memory(size)
        memory.show(tensor, shown_bytes)
        memory.add(tensor if member is None else member, attribute)
        if member is None and self._tensor.is_leaf.__get__(tensor):
            gradient = self._tensor.grad.__get__(tensor)
            if gradient is not None:
                self._add_tensor(gradient, tensor, ".grad")

    def _address(self, shown: Any) -> int:
        if type(shown) in self.array_types:
            return self._interface(shown)["data"][0]
        return self._storage(shown).data_ptr()


def _with_subclasses(of: Any) -> Set[type]:
    """Returns a class and all its subclasses; none if it is no class."""
    types: Set[type] = set()
    added = [of] if isinstance(of, type) else []
    while added:
        types.update(added)
        added = [sub for one in added for sub in type.__subclasses__(one) if sub not in types]
    return types


def name_of_type(kind: type) -> str:
    """Returns "module.Class", without the module if it is builtins."""
    module = type.__getattribute__(kind, "__module__")
    name = type.__getattribute__(kind, "__qualname__")
    return clean(name if module == "builtins" or not isinstance(module, str) else f"{module}.{name}")


def clean(text: str, characters: int = 200) -> str:
    """Returns a name as valid UTF-8 of limited length."""
    if len(text) > characters:
        text = text[: characters - 1] + "\u2026"
    return text.encode("utf-8", "replace").decode()
