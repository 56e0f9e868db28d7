"""Tests of the modules of perf/workloads/compare: metrics, ratios, aims and rejected runs."""

import os
import sys
import unittest
from itertools import product
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "perf" / "workloads"))

from runner import allocators, measure, ratios, report, workloads  # noqa: E402
from runner.rounds import Rounds  # noqa: E402


def chance_outside(count, left_out):
    """Returns the probability that the median of `count` values is outside the interval, by
    enumerating all cases: each value is above or below the median with equal probability."""
    cases = [sum(case) for case in product((0, 1), repeat=count)]
    beyond = sum(1 for heads in cases if heads <= left_out or heads >= count - left_out)
    return beyond / len(cases)


class IntervalTest(unittest.TestCase):
    def test_contains_median_in_95_percent_of_cases(self):
        for count in range(6, 15):
            left_out = ratios.outside(count)
            self.assertLessEqual(chance_outside(count, left_out), 0.05, count)
            self.assertGreater(chance_outside(count, left_out + 1), 0.05, count)

    def test_covers_all_values_if_there_are_few(self):
        self.assertEqual([ratios.outside(count) for count in (1, 2, 5)], [0, 0, 0])

    def test_uses_ratios_within_each_round(self):
        others = [10.0 * (round + 1) for round in range(11)]
        ours = [other * (0.5 + number / 100) for number, other in enumerate(others)]
        found = ratios.ratio(ours, others)
        self.assertAlmostEqual(found.median, 0.55)
        self.assertAlmostEqual(found.low, 0.51)
        self.assertAlmostEqual(found.high, 0.59)

    def test_is_none_without_values_to_compare_with(self):
        self.assertIsNone(ratios.ratio([], []))
        self.assertIsNone(ratios.ratio([1, 2], [0, 0]))


def rounds_of(**seconds):
    rounds = Rounds(seconds)
    for name, values in seconds.items():
        rounds.runs[name] = [measure.Metrics(value, value / 2, int(value * 10), int(value * 100))
                             for value in values]
    return rounds


class ReportTest(unittest.TestCase):
    def test_compares_with_best_rival(self):
        rounds = rounds_of(glibc=[1] * 6, tcmalloc=[4] * 6, jemalloc=[3] * 6, pool=[2.7] * 6)
        self.assertEqual(rounds.best_rival("cpu"), "jemalloc")
        lines = list(report.judged(workloads.ALL["A"], rounds))
        self.assertEqual(len(lines), 4)
        self.assertIn("A pool: cpu of jemalloc 0.900", lines[0])
        self.assertTrue(lines[0].endswith("aim 0.97: met"))
        self.assertIn("A pool: cpu of glibc 2.700", lines[1])
        self.assertTrue(lines[1].endswith("aim 0.50: MISSED"))

    def test_compares_pool_with_itself_without_samples(self):
        rounds = rounds_of(profiled=[1.01] * 6, pool=[1] * 6)
        self.assertEqual(list(report.judged(workloads.ALL["B"], rounds)),
                         ["B profiled: cpu of pool 1.010 (1.010–1.010), aim 1.005: MISSED"])

    def test_judges_only_aims_with_measured_values(self):
        self.assertEqual(list(report.judged(workloads.ALL["A"], rounds_of(pool=[1] * 6))), [])
        self.assertEqual(list(report.judged(workloads.ALL["F"], rounds_of(glibc=[1] * 6))), [])

    def test_rows_have_a_cell_for_each_heading(self):
        rounds = rounds_of(glibc=[1] * 6, tcmalloc=[2] * 6, pool=[2] * 6)
        rows = [*report.title_row(), *report.lines_of(workloads.ALL["E"], rounds)]
        self.assertEqual({row.count("|") for row in rows}, {len(report.HEADINGS) + 1})


def run_shell(script, expected=(), foreign=(), **variables):
    environment = {"PATH": os.environ["PATH"], **variables}
    return measure.run(["/bin/sh", "-c", script], environment, expected, foreign)


class RunTest(unittest.TestCase):
    def test_counts_program_and_its_children(self):
        loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
        metrics, printed = run_shell(f"({loop}); echo printed")
        idle, _ = run_shell("sleep 0.1")
        self.assertGreater(metrics.cpu, idle.cpu)
        self.assertGreater(metrics.faults, 0)
        self.assertGreater(metrics.peak, 100_000)
        self.assertEqual(printed, "printed\n")

    def test_rejects_failed_program(self):
        with self.assertRaisesRegex(measure.Failed, "ended with 3: the reason"):
            run_shell("sleep 0.1; echo the reason >&2; exit 3")

    def test_rejects_program_without_expected_library(self):
        with self.assertRaisesRegex(measure.Failed, "libnothing.so was never loaded"):
            run_shell("sleep 0.1", expected=("libnothing.so",))

    def test_rejects_program_with_library_of_another_allocator(self):
        with self.assertRaisesRegex(measure.Failed, "libc.so is loaded, which belongs to another"):
            run_shell("sleep 0.1", foreign=("libc.so",))


class WorkloadTest(unittest.TestCase):
    def test_names_missing_packages(self):
        needs = (("/", "base"), ("/no/such", "one"), ("/nor/this", "other"))
        workload = workloads.Workload("X", "none", workloads.SMALL, needs=needs)
        with self.assertRaisesRegex(measure.Missing, "install the Debian packages one other$"):
            workloads.check_packages(workload)


class AllocatorTest(unittest.TestCase):
    def test_clean_environment_drops_tuning_variables(self):
        tuning = ("MALLOC_ARENA_MAX", "LD_PRELOAD", "TENSORPOOL_LIMIT", "PYTHONPATH", "OMP_WAIT_POLICY")
        for name in tuning:
            os.environ[name] = ""
            self.addCleanup(os.environ.pop, name)
        self.assertEqual([name for name in tuning if name in allocators.clean_environment()], [])

    def test_expected_and_foreign_files_are_disjoint(self):
        for allocator, workload in product(allocators.ALL.values(), workloads.ALL.values()):
            expected = allocators.expected_files(allocator, workload)
            self.assertEqual(bool(expected), allocator.key != "glibc")
            self.assertFalse(set(expected) & set(allocators.foreign_files(allocator, workload)))


if __name__ == "__main__":
    unittest.main()
