"""The parts of perf/workloads/compare: its results, and the runs that it rejects."""

import os
import sys
import unittest
from itertools import product
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "perf" / "workloads"))

from runner import contenders, measure, ratios, report, works  # noqa: E402
from runner.rounds import Rounds  # noqa: E402


def chance_outside(count, left_out):
    """Returns the probability that the median of `count` values is outside the interval, by
    enumerating all cases: each value is above or below the median with equal probability."""
    cases = [sum(case) for case in product((0, 1), repeat=count)]
    beyond = sum(1 for heads in cases if heads <= left_out or heads >= count - left_out)
    return beyond / len(cases)


class TheInterval(unittest.TestCase):
    def test_holds_the_median_in_95_of_100_cases(self):
        for count in range(6, 15):
            left_out = ratios.outside(count)
            self.assertLessEqual(chance_outside(count, left_out), 0.05, count)
            self.assertGreater(chance_outside(count, left_out + 1), 0.05, count)

    def test_is_all_there_is_of_few(self):
        self.assertEqual([ratios.outside(count) for count in (1, 2, 5)], [0, 0, 0])

    def test_is_of_the_ratios_of_each_round(self):
        others = [10.0 * (round + 1) for round in range(11)]
        ours = [other * (0.5 + number / 100) for number, other in enumerate(others)]
        found = ratios.ratio(ours, others)
        self.assertAlmostEqual(found.median, 0.55)
        self.assertAlmostEqual(found.low, 0.51)
        self.assertAlmostEqual(found.high, 0.59)

    def test_is_none_without_something_to_compare_with(self):
        self.assertIsNone(ratios.ratio([], []))
        self.assertIsNone(ratios.ratio([1, 2], [0, 0]))


def rounds_of(**seconds):
    rounds = Rounds(seconds)
    for name, values in seconds.items():
        rounds.runs[name] = [measure.Figures(value, value / 2, int(value * 10), int(value * 100))
                             for value in values]
    return rounds


class TheTable(unittest.TestCase):
    def test_compares_with_the_best_of_the_two_rivals(self):
        rounds = rounds_of(glibc=[1] * 6, tcmalloc=[4] * 6, jemalloc=[3] * 6, pool=[2.7] * 6)
        self.assertEqual(rounds.best_rival("cpu"), "jemalloc")
        lines = list(report.judged(works.ALL["A"], rounds))
        self.assertEqual(len(lines), 4)
        self.assertIn("A pool: cpu of jemalloc's 0.900", lines[0])
        self.assertTrue(lines[0].endswith("aim 0.97: met"))
        self.assertIn("A pool: cpu of glibc's 2.700", lines[1])
        self.assertTrue(lines[1].endswith("aim 0.50: MISSED"))

    def test_judges_only_what_was_measured(self):
        self.assertEqual(list(report.judged(works.ALL["A"], rounds_of(pool=[1] * 6))), [])
        self.assertEqual(list(report.judged(works.ALL["F"], rounds_of(glibc=[1] * 6))), [])

    def test_has_a_cell_for_each_heading(self):
        rounds = rounds_of(glibc=[1] * 6, tcmalloc=[2] * 6, pool=[2] * 6)
        rows = [*report.title_row(), *report.lines_of(works.ALL["E"], rounds)]
        self.assertEqual({row.count("|") for row in rows}, {len(report.HEADINGS) + 1})


def run_shell(script, expected=(), foreign=(), **variables):
    environment = {"PATH": os.environ["PATH"], **variables}
    return measure.run(["/bin/sh", "-c", script], environment, expected, foreign)


class ARun(unittest.TestCase):
    def test_is_what_the_program_and_its_children_took(self):
        loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
        figures, printed = run_shell(f"({loop}); echo said")
        idle, _ = run_shell("sleep 0.1")
        self.assertGreater(figures.cpu, idle.cpu)
        self.assertGreater(figures.faults, 0)
        self.assertGreater(figures.peak, 100_000)
        self.assertEqual(printed, "said\n")

    def test_that_fails_is_refused(self):
        with self.assertRaisesRegex(measure.Failed, "ended with 3: so it is"):
            run_shell("sleep 0.1; echo so it is >&2; exit 3")

    def test_without_its_library_is_refused(self):
        with self.assertRaisesRegex(measure.Failed, "libnothing.so was never loaded"):
            run_shell("sleep 0.1", expected=("libnothing.so",))

    def test_with_the_library_of_another_is_refused(self):
        with self.assertRaisesRegex(measure.Failed, "libc.so is loaded, which belongs to another"):
            run_shell("sleep 0.1", foreign=("libc.so",))


class AWork(unittest.TestCase):
    def test_names_the_packages_that_it_misses(self):
        work = works.Work("X", "none", works.SMALL, needs=(("/", "base"), ("/no/such", "one"),
                                                           ("/nor/this", "other")))
        with self.assertRaisesRegex(measure.Missing, "install the Debian packages one other$"):
            works.check_packages(work)


class AContender(unittest.TestCase):
    def test_keeps_nothing_that_tunes_an_allocator(self):
        tuning = ("MALLOC_ARENA_MAX", "LD_PRELOAD", "TENSORPOOL_LIMIT", "PYTHONPATH", "OMP_WAIT_POLICY")
        for name in tuning:
            os.environ[name] = ""
            self.addCleanup(os.environ.pop, name)
        self.assertEqual([name for name in tuning if name in contenders.clean_environment()], [])

    def test_expects_what_it_loads_and_none_of_the_others(self):
        for contender, work in product(contenders.ALL.values(), works.ALL.values()):
            expected = contenders.expected_files(contender, work)
            self.assertEqual(bool(expected), contender.key != "glibc")
            self.assertFalse(set(expected) & set(contenders.foreign_files(contender, work)))


if __name__ == "__main__":
    unittest.main()
