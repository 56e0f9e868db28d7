"""Tests what tools/photos/compare.py makes of its runs. The path of that file is the first argument."""

import contextlib
import importlib.util
import io
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

SPECIFICATION = importlib.util.spec_from_file_location("compare", sys.argv.pop(1))
compare = importlib.util.module_from_spec(SPECIFICATION)
sys.modules["compare"] = compare
SPECIFICATION.loader.exec_module(compare)
MIB = 1 << 20


def allocator(name, memory, *runs):
    """Returns an allocator whose runs have these seconds, faults, MiB and developed pictures."""
    return compare.Allocator(name, memory, runs=[
        compare.Run(compare.measure.Metrics(cpu, 0, faults, mib * MIB), dict.fromkeys(pictures, 1_500_000),
                    report=f"report of {name}\n") for cpu, faults, mib, pictures in runs])


def comparison(*allocators, files=2, differ=False):
    return Namespace(allocators=allocators, files=[Path("a.jpg")] * files, differ=differ,
                     options=Namespace(frugal=False, output=Path("out")))


MALLOC = allocator("malloc", "malloc", (2.0, 1_000_000, 400, [0, 1]))
CONTEXT = allocator("context", "context", (1.0, 900, 200, [0, 1]))


class Table(unittest.TestCase):
    def test_shows_values_and_ratios_to_the_first_row(self):
        pool = allocator("tensorpool", "pool", (1.5, 1234, 410, [0]))
        self.assertEqual(compare.table([MALLOC, pool]), (
            "memory from           CPU seconds           page faults          peak memory\n"
            "malloc                2.00   1.00      1,000,000   1.00       400 MiB   1.00\n"
            "tensorpool            1.50   0.75          1,234  0.001       410 MiB   1.02"))

    def test_shows_the_median_of_the_rounds(self):
        pool = allocator("tensorpool", "pool", (3, 30, 3, []), (1, 10, 1, []), (2, 21, 2, []), (9, 90, 9, []))
        self.assertEqual((pool.median("cpu"), pool.median("faults")), (2.5, 25.5))

    def test_shows_no_ratio_to_nothing(self):
        self.assertEqual(compare.ratio(1, 0), "-")


class Summary(unittest.TestCase):
    def test_states_what_the_pool_took(self):
        pool = allocator("tensorpool", "pool", (1.0, 2000, 300, [0, 1]))
        text = compare.summary(comparison(MALLOC, pool, CONTEXT))
        self.assertIn("2 of 2 pictures, 3.0 megapixels; median of 1, ratio to malloc", text)
        self.assertIn("report of tensorpool", text)
        self.assertIn("The results are identical; they are in\nout.", text)
        self.assertTrue(text.endswith("The pool took 0.50 of the CPU time and 0.002 of the page faults of "
                                      "malloc,\nwith 0.75 of its peak memory."), text)

    def test_states_no_saving_that_rounds_to_none(self):
        pool = allocator("tensorpool", "pool", (1.995, 2000, 300, [0, 1]))
        self.assertIn("The pool saved no CPU time here: it took 1.00 of",
                      compare.summary(comparison(MALLOC, pool, CONTEXT)))

    def test_states_no_saving_for_different_work(self):
        pool = allocator("tensorpool", "pool", (1.0, 2000, 300, [0]))
        text = compare.summary(comparison(MALLOC, pool, CONTEXT))
        self.assertIn("The results that all produced are identical", text)
        self.assertTrue(text.endswith("not all allocators developed the same pictures."))

    def test_reports_different_results(self):
        pool = allocator("tensorpool", "pool", (1.0, 2000, 300, [0, 1]))
        self.assertIn("DIFFER", compare.summary(comparison(MALLOC, pool, CONTEXT, differ=True)))


class Pictures(unittest.TestCase):
    def test_results_have_names_of_their_own(self):
        self.assertEqual(compare.result_names([Path("a/x.jpg"), Path("b/x.jpeg"), Path("x.png"), Path("y.jpg")]),
                         ["x.jpg", "x-2.jpg", "x-3.jpg", "y.jpg"])

    def test_folders_are_searched_for_jpeg_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(compare.measure.Failed, "contains no .jpg or .jpeg file"):
                compare.find_pictures([folder])
            for name in ("b.JPG", "a.jpeg", "c.png"):
                (Path(folder) / name).touch()
            named = Path(folder) / "c.png"
            self.assertEqual([file.name for file in compare.find_pictures([folder, named])],
                             ["a.jpeg", "b.JPG", "c.png"])


class Program(unittest.TestCase):
    METRICS = compare.measure.Metrics(1, 0, 0, 0)

    def test_lines_of_the_program_are_read(self):
        run = compare.read_run(self.METRICS, "preload \ndone 0 42\nfailed 1 is empty\n  used 3 MiB\n", "")
        self.assertEqual((run.pixels, run.failures, run.report), ({0: 42}, {1: "is empty"}, "  used 3 MiB\n"))

    def test_another_malloc_is_reported(self):
        with self.assertRaisesRegex(compare.measure.Failed, "expected from the C library, but is from /x/libtc"):
            compare.read_run(self.METRICS, "preload /x/libtc.so\n", "")
        with self.assertRaisesRegex(compare.measure.Failed, "expected from libtc.so, but is from the C library"):
            compare.read_run(self.METRICS, "preload \n", "libtc.so")

    def test_invalid_numbers_end_with_status_two(self):
        for number in ("0", "100", "none", "1.5"):
            with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit) as ended:
                sys.argv[1:] = ["--rounds", number]
                compare.arguments()
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(f'"{number}" is not a number from 1 to 99', errors.getvalue())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
