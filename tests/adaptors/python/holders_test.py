"""What refers to the largest arrays, as enable_holders() answers it."""

import gc
import importlib.util
import json
import sys
import unittest
import weakref

from support import np, run_python, tensorpool
from tensorpool import _holders

MIB = 1 << 20

# Each array has a size of its own, by which the answer is looked up.
HOLDERS = """
import collections, functools, json, threading
import numpy as np
import tensorpool
from tensorpool import _holders

sizes = {}

def array(name):
    sizes[name] = (len(sizes) + 1) * 80_000
    return np.ones(sizes[name] // 8)

class Model:
    shared = array("class")
    def __init__(self):
        self.weights = array("attribute")
        self.layers = {"head": {3: [array("nested")]}}

class Slotted:
    __slots__ = ("data",)

variable = array("variable")
listed = [0, array("list")]
many = [array("many")] + [np.ones(1) for i in range(9)]
pair = (array("tuple"), 1)
mapping = {"weights": array("dict")}
other_keys = {7: array("int key"), b"secret": array("other key")}
queue = collections.deque([array("deque")])
class Hashed(np.ndarray):
    __hash__ = object.__hash__
several = {array("set").view(Hashed)}
model, slotted = Model(), Slotted()
slotted.data = array("slot")
partial = functools.partial(print, array("partial"))

def outer():
    closed = array("closure")
    return lambda: closed

def generator():
    local = array("generator")
    yield
    print(local)

def default(argument=array("default")):
    pass

closure, suspended, view = outer(), generator(), array("view")[10:]
next(suspended)
twice = [array("twice")]
again = twice[0]
nameless = [array("cycle")]
nameless.append(nameless)
del nameless
try:
    def failing():
        kept = array("traceback")
        raise ValueError
    failing()
except ValueError as raised:
    error = raised

started, done = threading.Event(), threading.Event()

def wait():
    local = array("thread")
    started.set()
    done.wait()

def search():
    mine, cell = array("frame"), array("cell")
    (lambda: cell)
    return json.loads(_holders._answer())

thread = threading.Thread(target=wait)
thread.start()
started.wait()
_holders._LARGEST = 100
answer = search()
done.set()
names = {one["bytes"]: one["held_by"] for one in answer["largest"]}
print(json.dumps({name: names.get(size) for name, size in sizes.items()}))
"""


def answer():
    return json.loads(_holders._answer())


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = json.loads(run_python(HOLDERS))

    def check(self, name, *expected):
        self.assertEqual(self.names[name], list(expected))

    def test_variables_of_modules(self):
        self.check("variable", "__main__.variable")
        self.check("twice", "__main__.twice[0]", "__main__.again")

    def test_containers(self):
        self.check("list", "__main__.listed[1]")
        self.check("many", "__main__.many[0] (list of 10 arrays)")
        self.check("tuple", "__main__.pair[0]")
        self.check("dict", "__main__.mapping['weights']")
        self.check("deque", "__main__.queue[0]")
        self.check("set", "__main__.several{\u2026}.base")

    def test_keys_that_are_no_names_are_shown_by_type(self):
        self.check("int key", "__main__.other_keys[7]")
        self.check("other key", "__main__.other_keys[<bytes>]")

    def test_attributes(self):
        self.check("attribute", "__main__.model.weights")
        self.check("class", "__main__.Model.shared")
        self.check("slot", "__main__.slotted.data")
        self.check("partial", "__main__.partial.args[0]")
        self.check("nested", "__main__.model.layers['head'][3][0]")

    def test_variables_of_functions(self):
        for name, function, variable in (
            ("frame", "search", "mine"),
            ("cell", "search", "cell"),
            ("thread", "wait", "local"),
            ("generator", "generator", "local"),
            ("traceback", "failing", "kept"),
        ):
            self.assertEqual(len(self.names[name]), 1, name)
            self.assertRegex(
                self.names[name][0], rf"^{function}\(\) at <string>:\d+, variable {variable}$"
            )

    def test_closures_and_defaults(self):
        self.check("closure", "__main__.outer.<locals>.<lambda>(), closure variable closed")
        self.check("default", "__main__.default().__defaults__[0]")

    def test_an_array_that_only_a_view_holds(self):
        self.check("view", "__main__.view.base")

    def test_an_object_without_a_name_is_shown_by_type(self):
        self.check("cycle", "<list>[0]")


class Search(unittest.TestCase):
    def test_describes_the_memory_the_largest_first(self):
        kept = [np.ones((3, MIB), np.float32), np.ones((2, MIB), np.int8)]
        found = answer()
        self.assertEqual(found["version"], 1)
        self.assertFalse(found["is_cut"])
        self.assertGreater(found["objects"], 1000)
        self.assertGreater(found["pause_ns"], 0)
        first, second = found["largest"][:2]
        self.assertEqual(first["bytes"], 12 * MIB)
        self.assertEqual(first["type"], "numpy.ndarray")
        self.assertEqual(first["shape"], [3, MIB])
        self.assertEqual(first["dtype"], "float32")
        self.assertEqual(first["device"], "cpu")
        self.assertEqual(second["bytes"], 2 * MIB)
        self.assertLessEqual(len(found["largest"]), 10)
        del kept

    def test_keeps_nothing_alive(self):
        class Subclass(np.ndarray):
            pass

        held = {"one": np.ones(MIB), "two": [np.ones(MIB).view(Subclass)]}
        dropped = weakref.ref(held["two"][0])
        counts = [sys.getrefcount(held["one"]), sys.getrefcount(held)]
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        for _ in range(3):
            answer()
        self.assertEqual([sys.getrefcount(held["one"]), sys.getrefcount(held)], counts)
        del held["two"]
        self.assertIsNone(dropped())
        self.assertFalse([one for one in gc.get_objects() if type(one) is _holders._Search])

    def test_leaves_the_variables_of_functions_alone(self):
        def holds(dropped):
            local = np.ones(MIB)
            dropped.append(weakref.ref(local))
            yield
            del local
            yield

        dropped = []
        suspended = holds(dropped)
        next(suspended)
        local = np.ones(MIB)
        dropped.append(weakref.ref(local))
        answer()
        next(suspended)
        del local
        self.assertEqual([one() for one in dropped], [None, None])

    def test_runs_no_code_of_the_program(self):
        class Loud(np.ndarray):
            def __getattribute__(self, name):
                raise AssertionError(name)

        class Watched:
            def __getattribute__(self, name):
                raise AssertionError(name)

            def __eq__(self, other):
                raise AssertionError("==")

            __hash__ = object.__hash__

        watched = Watched()
        object.__setattr__(watched, "array", np.ones(3 * MIB).view(Loud))
        keyed = {Watched(): np.ones(2 * MIB)}
        names = [one["held_by"] for one in answer()["largest"][:2]]
        self.assertTrue(names[0][0].endswith("variable watched.array.base"), names)
        self.assertRegex(names[1][0], r"variable keyed\[<.*Watched>\]$")
        del keyed

    def test_restores_the_garbage_collection(self):
        answer()
        self.assertTrue(gc.isenabled())
        gc.disable()
        self.addCleanup(gc.enable)
        answer()
        self.assertFalse(gc.isenabled())

    def test_is_cut_after_its_time(self):
        self.addCleanup(setattr, _holders, "_TIME_NS", _holders._TIME_NS)
        _holders._TIME_NS = 0
        found = answer()
        self.assertTrue(found["is_cut"])
        self.assertEqual(found["largest"], [])

    def test_an_error_is_the_answer(self):
        self.addCleanup(setattr, _holders, "_Search", _holders._Search)
        _holders._Search = None
        self.assertEqual(answer()["error"], "the search failed: TypeError")

    def test_imports_nothing(self):
        printed = run_python(
            "import sys, json, tensorpool\n"
            "tensorpool.enable_holders(); tensorpool.enable_holders()\n"
            "from tensorpool import _holders\n"
            "print(json.loads(_holders._answer())['largest'], 'numpy' in sys.modules)\n"
        )
        self.assertEqual(printed, "[] False\n")


@unittest.skipUnless(importlib.util.find_spec("torch"), "needs python3-torch")
class Tensors(unittest.TestCase):
    def test_are_found_by_their_storage(self):
        printed = run_python(
            "import json, numpy as np, torch\n"
            "from tensorpool import _holders\n"
            "model = torch.nn.Linear(1000, 500)\n"
            "model(torch.ones(1, 1000)).sum().backward()\n"
            "model.register_buffer('seen', torch.ones(400000))\n"
            "part = torch.ones(300000)[5:10]\n"
            "over = torch.from_numpy(np.ones(100000))\n"
            "array = torch.ones(150000).numpy()\n"
            "print(json.dumps(json.loads(_holders._answer())['largest'][:6]))\n"
        )
        found = [(one["bytes"], one["shape"], one["held_by"]) for one in json.loads(printed)]
        self.assertEqual(
            found,
            [
                (2_000_000, [500, 1000], ["__main__.model._parameters['weight']"]),
                (2_000_000, [500, 1000], ["__main__.model._parameters['weight'].grad"]),
                (1_600_000, [400_000], ["__main__.model._buffers['seen']"]),
                (1_200_000, [300_000], ["__main__.part"]),
                (800_000, [100_000], ["__main__.over"]),
                (600_000, [150_000], ["__main__.array.base"]),
            ],
        )


if __name__ == "__main__":
    unittest.main()
