"""Names for the objects between an array and a name of the program, such as `.weights` or `[3]`."""

from __future__ import annotations

import collections
import os
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
from ._array_memory import clean, name_of_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

_IN_FUNCTION = ("__defaults__", "__kwdefaults__", "__dict__", "__globals__")


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
    frame = frame_of(one)
    return "" if frame is not None else None


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
