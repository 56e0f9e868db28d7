"""Runs programs by turns and keeps their reports."""

import json
import os
import statistics
import subprocess
from collections import defaultdict

# Prefixes of environment variables that could change how an allocator works.
TUNING = ("TENSORPOOL_", "LD_", "MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_", "MIMALLOC_", "JE_")


class Failed(Exception):
    """A program failed; the text names the program and the failure."""


def environment(preload):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(TUNING)}
    return kept | ({"LD_PRELOAD": preload} if preload else {})


def run(program, subject, min_time):
    """Runs the program once and returns its report. Raises Failed if malloc is in another library
    than the subject's."""
    command = [program, "--benchmark_format=json", f"--benchmark_min_time={min_time}"]
    done = subprocess.run(command, env=environment(subject.preload), capture_output=True, text=True)
    if done.returncode != 0:
        message = done.stderr.strip()[-300:]
        raise Failed(f"{program.name} for {subject.key} ended with {done.returncode}: {message}")
    report = json.loads(done.stdout)
    found = report["context"]["allocator"]
    expected = subject.preload.split(".so")[0] or "libc"
    if not found.startswith((expected + ".so", expected + "-")):
        raise Failed(f"{program.name}: malloc is in {found}, expected {expected}")
    return report


class Results:
    """Values by benchmark, subject and field. Lower times are better."""

    def __init__(self):
        self._rounds = defaultdict(list)
        self.context = {}

    def add(self, subject, reports):
        """Adds the reports of the subject's programs in one round; the fastest one counts."""
        times = defaultdict(dict)
        for report in reports:
            self.context |= {subject.key: report["context"]}
            for line in report["benchmarks"]:
                if line.get("error_occurred"):
                    continue
                best = times[line["name"]]
                if not best or line["seconds"] < best["seconds"]:
                    times[line["name"]] = line
        for name, line in times.items():
            for field in ("seconds", "base_seconds", "faults", "peak_resident_bytes"):
                if field in line:
                    self._rounds[name, subject.key, field].append(line[field])

    def get(self, row, subject, field="seconds"):
        """Returns the median over all rounds, or None if there are none."""
        rounds = self._rounds.get((row.benchmark, subject.key, field))
        return statistics.median(rounds) if rounds else None

    def slowest(self, row, subject):
        return max(self._rounds.get((row.benchmark, subject.key, "seconds"), []), default=None)

    def spread(self, row, subject):
        """Returns the interquartile range of the rounds, relative to the median."""
        rounds = self._rounds.get((row.benchmark, subject.key, "seconds"), [])
        if len(rounds) < 4:
            return 0.0
        low, middle, high = statistics.quantiles(rounds, n=4)
        return (high - low) / middle


def run_rounds(question, subjects, rounds, min_time, progress):
    """Runs the question for each (subject, programs) by turns, in `rounds` rounds. Each round begins
    with another subject."""
    results = Results()
    for number in range(rounds):
        turn = number % len(subjects)
        for subject, programs in subjects[turn:] + subjects[:turn]:
            progress(f"{question.name}: round {number + 1} of {rounds}, {subject.key}")
            results.add(subject, [run(program, subject, min_time) for program in programs])
    return results
