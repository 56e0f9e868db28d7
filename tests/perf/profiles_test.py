"""Tests of perf/profiles: which line a site belongs to, and how names of functions are compared."""

import sys
import unittest
from importlib import machinery, util
from pathlib import Path

sys.dont_write_bytecode = True
PROFILES = Path(__file__).resolve().parents[2] / "perf" / "profiles"
sys.path.insert(0, str(PROFILES))

import common  # noqa: E402


def script(name):
    loader = machinery.SourceFileLoader(name, str(PROFILES / name))
    module = util.module_from_spec(util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def frame(name, module="", internal=False):
    return {"name": name, "module": module, "internal": internal}


def line_of(*innermost_first):
    profile = {"frames": list(innermost_first)}
    return common.line_of(profile, {"stack": list(reversed(range(len(innermost_first))))})["name"]


class LineTest(unittest.TestCase):
    def test_is_the_innermost_of_the_script(self):
        self.assertEqual(line_of(frame("f", "lib.so"), frame("pad", internal=True), frame("own"),
                                 frame("main")), "own")

    def test_is_the_innermost_of_python_if_all_are_of_libraries(self):
        self.assertEqual(line_of(frame("f", "lib.so"), frame("pad", internal=True)), "pad")

    def test_of_a_native_program_is_not_that_of_an_allocator(self):
        self.assertEqual(line_of(frame("operator new", "a", True), frame("f", "a")), "f")

    def test_of_other_stacks_has_a_name(self):
        self.assertEqual(line_of(), "[other stacks]")


class HeaptrackTest(unittest.TestCase):
    def test_both_tools_name_the_same_function(self):
        function_of = script("heaptrack").function_of
        for call in ("a::Mat::create(int, std::vector<int>) const", "a::Mat::create in liba.so.4",
                     "a::Mat::create const at mat.cpp:12", "void a::Mat::create<int>(int)"):
            self.assertEqual(function_of(call), "a::Mat::create", call)
        for call in ("0x7f5722f64457", "liba.so.4+0x7cfbf", "_start in program"):
            self.assertEqual(function_of(call), "", call)

    def test_adds_stacks_with_the_same_innermost_functions(self):
        sites = script("heaptrack").sites_of("main;f;g 10\nmain;h;g;operator new(int) 5\n", 1)
        self.assertEqual(sites, {("g",): 15})


class ErrorTest(unittest.TestCase):
    def test_allows_three_standard_deviations_and_a_hundredth(self):
        allowed = script("error").allowed(512 * 1024 * 100)
        self.assertAlmostEqual(allowed, 512 * 1024 * (3 * 10 + 1))


if __name__ == "__main__":
    unittest.main()
