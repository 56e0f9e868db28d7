"""Names what refers to the largest arrays and tensors of this process.

The search stops the program, so it must be short, and it must change nothing: it runs no code of the
program's classes and reads no value. Its own objects are not among those that it looks at, because
their list is made first."""

from __future__ import annotations

import atexit
import collections
import functools
import gc
import json
import sys
import time
from types import FrameType, ModuleType

from . import _tensorpool
from ._array_memory import ArrayMemory, Memory, clean, name_of_type
from ._holder_names import attribute_in, dict_of, root_of, step, variable_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

_LARGEST = 10  # memories that are reported
_HOLDERS = 3  # of a memory that are named
_REFERRERS = 16  # of an object that are followed
_STEPS = 8  # from an array to a name, dicts of attributes included
_FEW = 4  # arrays of a collection that are not counted
_TEXT = 300  # characters of a name
_TIME_NS = 800_000_000  # for everything that takes longer with more objects


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
