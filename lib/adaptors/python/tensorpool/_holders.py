"""Names what refers to the largest arrays and tensors of this process.

The search stops the program, so it must be short, and it must change nothing: it runs no code of the
program's classes and reads no value. Its own objects are not among those that it looks at, because
their list is made first.

Of NumPy and PyTorch, only modules that the program has imported are used. Attributes are read with
the descriptors of the base classes."""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import gc
import heapq
import json
import os
import sys
import time
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    ModuleType,
)

from . import _tensorpool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ContextManager, Dict, List, Optional, Set, Tuple

_LARGEST = 10  # memories that are reported
_HOLDERS = 3  # of a memory that are named
_REFERRERS = 16  # of an object that are followed
_STEPS = 8  # from an array to a name, dicts of attributes included
_FEW = 4  # arrays of a collection that are not counted
_TEXT = 300  # characters of a name
_TIME_NS = 800_000_000  # for everything that takes longer with more objects
_MEMBERS = 16  # of a memory that are kept
_BETWEEN_LOOKS = 1024  # arrays
_IN_FUNCTION = ("__defaults__", "__kwdefaults__", "__dict__", "__globals__")


def enable_holders() -> None:
    """Makes this process answer `tensorpool holders`: what refers to its largest arrays?

    An answer stops the program for as long as some passes over all its objects take, about a second
    at most. It is given on the main thread, when that next runs Python code after a thread has seen
    the request, at a slow path of a pool. Forked processes answer too. A second call does nothing.
    """
    _tensorpool.answer_holders_by(_answer)
    _stop_at_exit()


@functools.lru_cache(None)
def _stop_at_exit() -> None:
    atexit.register(_tensorpool.stop_answering_holders)


def _answer() -> str:
    """Returns the answer as JSON. A garbage collection during the search would take longer than the
    search itself, and would run the program's finalizers."""
    began = time.monotonic_ns()
    collects = gc.isenabled()
    gc.disable()
    try:
        answer = _Search(gc.get_objects(), began + _TIME_NS).answer()
    except Exception as error:
        answer = {"error": f"the search failed: {name_of_type(type(error))}"}
    finally:
        if collects:
            gc.enable()
    answer["pause_ns"] = time.monotonic_ns() - began
    return json.dumps(answer)


def _frames_of_program() -> List[FrameType]:
    """Returns the frames of all threads. A variable with one of ours would be a cycle of references
    that keeps everything alive until the next garbage collection."""
    frames = []
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                frames.append(frame)
            frame = frame.f_back
    return frames


class _Search:
    """One search. It is not among its own objects, so that all of it ends with its last reference."""

    def __init__(self, objects: List[Any], until: int) -> None:
        self._objects = objects
        self._until = until
        self._memory = ArrayMemory()
        # The garbage collector does not see the variables of running functions.
        self._values: List[Any] = []
        self._variables: List[str] = []
        for frame in _frames_of_program():
            for name, value in _tensorpool.variables_of(frame):
                self._values.append(value)
                self._variables.append(variable_of(frame, name))
        self._objects.append(self._values)
        self._modules = {
            id(dict_of(module)): clean(name)
            for name, module in reversed(list(sys.modules.items()))  # the first name stays
            if issubclass(type(module), ModuleType)
        }
        self._referrers: Dict[int, List[Any]] = {}  # of an object, by its id

    def answer(self) -> Dict[str, Any]:
        memory = self._memory
        with memory.context:
            arrays, tensors = _tensorpool.find_arrays(
                self._objects, memory.array_types, memory.tensor_types, 2 * _LARGEST, self._until
            )
            memory.add(arrays, tensors, self._until)
            largest = memory.largest(_LARGEST)
            self._follow([array for one in largest for array, _ in one.members])
            return {
                "version": 1,
                "objects": len(self._objects),
                "is_cut": time.monotonic_ns() > self._until,
                "largest": [{**memory.description(one), **self._holders(one)} for one in largest],
            }

    def _follow(self, objects: List[Any]) -> None:
        """Finds the referrers of the arrays, then theirs, until all lead to a name."""
        arrays, known = objects, {id(one) for one in objects}
        for _ in range(_STEPS):
            if all(map(self._is_named, arrays)) or time.monotonic_ns() > self._until:
                return
            pairs = _tensorpool.find_referrers(self._objects, objects, _REFERRERS, self._until)
            objects = []
            for held, holder in pairs:
                self._referrers.setdefault(id(held), []).append(holder)
                if id(holder) not in known and self._root(holder) is None:
                    known.add(id(holder))
                    objects.append(holder)

    def _is_named(self, array: Any) -> bool:
        holders = self._referrers.get(id(array), ())
        return bool(holders) and all(
            self._root(self._path([array, holder])[-1]) is not None for holder in holders
        )

    def _root(self, one: Any) -> Optional[str]:
        if one is self._values:
            return ""
        module = self._modules.get(id(one))
        return root_of(one) if module is None else module

    def _holders(self, memory: Memory) -> Dict[str, Any]:
        names: List[str] = []
        for array, attribute in memory.members:
            for holder in self._referrers.get(id(array), ()):
                name = self._name(self._path([array, holder])) + attribute
                is_item = name.endswith(("]", "}"))
                names.append(clean(name, _TEXT) + (self._count_in(holder) if is_item else ""))
        names = list(dict.fromkeys(names))
        return {"held_by": names[:_HOLDERS], "more_holders": len(names[_HOLDERS:])}

    def _count_in(self, holder: Any) -> str:
        """Returns how many arrays a collection has, if it has many."""
        for kind in (list, tuple, collections.deque, set, dict):
            if type(holder) is kind:
                items = list(holder.values()) if kind is dict else list(holder)
                types = self._memory.array_types | self._memory.tensor_types
                count = sum(map(types.__contains__, map(type, items)))
                return f" ({kind.__name__} of {count:,} arrays)" if count > _FEW else ""
        return ""

    def _path(self, path: List[Any]) -> List[Any]:
        """Extends a path by the fewest objects to one with a name, or as far as is known."""
        paths, seen = [path], {id(one) for one in path}
        for path in paths:
            if self._root(path[-1]) is not None:
                return path
            for holder in self._referrers.get(id(path[-1]), ()):
                if id(holder) not in seen:
                    seen.add(id(holder))
                    paths.append([*path, holder])
        return paths[-1]

    def _name(self, path: List[Any]) -> str:
        """Returns the name of the array at which the path begins."""
        at = len(path) - 1
        last = path[at]
        if last is self._values:
            text = self._variables[_tensorpool.position_in(last, path[at - 1])]
        elif id(last) in self._modules:
            text = self._modules[id(last)] + attribute_in(last, path[at - 1])
        else:
            root = root_of(last)
            text = f"<{name_of_type(type(last))}>" if root is None else root
            at += 1
        for i in range(at - 1, 0, -1):
            text += step(path, i)
        return text


# The memory of arrays and tensors, which several of them may share.


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


# Names for the objects between an array and a name of the program, such as `.weights` or `[3]`.


def dict_of(one: Any) -> Any:
    """Returns the dict of an object's attributes, or None."""
    try:
        return object.__getattribute__(one, "__dict__")
    except AttributeError:
        return None


def variable_of(frame: FrameType, name: str) -> str:
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    file = os.path.basename(code.co_filename)
    return f"{function}() at {file}:{frame.f_lineno}, variable {name}"


def frame_of(one: Any) -> Optional[FrameType]:
    """Returns the frame of a generator or coroutine, or a frame itself."""
    kind = type(one)
    if kind is FrameType:
        return one
    if kind is GeneratorType:
        return one.gi_frame
    if kind is CoroutineType:
        return one.cr_frame
    if kind is AsyncGeneratorType:
        return one.ag_frame
    return None


def root_of(one: Any) -> Optional[str]:
    """Returns the name of an object at which a search ends, or None."""
    kind = type(one)
    if issubclass(kind, type):
        return name_of_type(one)
    if issubclass(kind, ModuleType):
        return str((dict_of(one) or {}).get("__name__"))
    if kind is FunctionType:
        return f"{one.__module__}.{one.__qualname__}()"
    return None if frame_of(one) is None else ""


def step(path: List[Any], at: int) -> str:
    """Returns what leads from `path[at]` to `path[at - 1]`, to which it refers."""
    holder, held = path[at], path[at - 1]
    kind = type(holder)
    if issubclass(kind, dict):
        owner = path[at + 1] if at + 1 < len(path) else None
        if owner is not None and (dict_of(owner) is holder or issubclass(type(owner), type)):
            return attribute_in(holder, held)
        return f"[{_key(_tensorpool.position_in(holder, held))}]"
    if issubclass(kind, (list, tuple)):
        name = _closure_variable(path, at)
        return f"[{_tensorpool.position_in(holder, held)}]" if name is None else name
    if issubclass(kind, collections.deque):
        return f"[{_tensorpool.position_in(list(holder), held)}]"
    if issubclass(kind, (set, frozenset)):
        return "{\u2026}"
    if kind is CellType:
        return ""
    frame = frame_of(holder)
    if frame is not None:
        return _in_frame(frame, held)
    return _attribute(holder, held)


def attribute_in(attributes: Any, held: Any) -> str:
    """Returns the attribute that has a value, from a dict of attributes."""
    name = _tensorpool.position_in(attributes, held)
    return "." + clean(name, 60) if type(name) is str else f"[{_key(name)}]"


def _key(key: Any) -> str:
    if type(key) is str:
        return f"'{clean(key, 60)}'"
    return str(key) if type(key) is int else f"<{name_of_type(type(key))}>"


def _closure_variable(path: List[Any], at: int) -> Optional[str]:
    function = path[at + 1] if at + 1 < len(path) else None
    if type(function) is not FunctionType or function.__closure__ is not path[at]:
        return None
    index = _tensorpool.position_in(path[at], path[at - 1])
    return f", closure variable {function.__code__.co_freevars[index]}"


def _in_frame(frame: FrameType, held: Any) -> str:
    for name, value in _tensorpool.variables_of(frame):
        if value is held:
            return variable_of(frame, name)
    return variable_of(frame, "without a name")


def _attribute(holder: Any, held: Any) -> str:
    """Finds the attribute in the object's dict, or among the members that its classes define, as
    with `__slots__`. If it is in neither, it is hidden in C code."""
    attributes = dict_of(holder)
    if attributes is held or issubclass(type(holder), type):
        return ""
    if issubclass(type(attributes), dict):
        if _tensorpool.position_in(attributes, held) is not None:
            return attribute_in(attributes, held)
    if type(holder) is FunctionType:
        if holder.__closure__ is held:
            return ""
        names = [one for one in _IN_FUNCTION if getattr(holder, one) is held]
        return f".{names[0]}" if names else ".\u2026"
    for kind in type(holder).__mro__:
        for name, member in list(type.__dict__["__dict__"].__get__(kind).items()):
            if type(member) is MemberDescriptorType and _value_of(member, holder) is held:
                return f".{clean(name, 60)}"
    return ".\u2026"


def _value_of(member: MemberDescriptorType, holder: Any) -> Any:
    try:
        return member.__get__(holder)
    except AttributeError:
        return None
