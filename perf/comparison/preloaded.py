"""Runs programs that use malloc only, with tensorpool as their malloc from 64 KiB (`def`) and for every size (`m1`),
and with its rivals."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from comparison import subjects
from workloads.runner.allocators import ALL, clean_environment, interposer_of

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = {"glibc": ALL["glibc"], "tcmalloc": ALL["tcmalloc"], "mimalloc": ALL["mimalloc"],
            "jemalloc": ALL["plain-jemalloc"], "def": ALL["interposer"],
            "m1": replace(ALL["interposer"], variables=(("TENSORPOOL_INTERPOSE_MIN", "1"),))}


class Program:
    """A program of build/release/perf; `parser` gets the option --build, of the interposer."""

    def __init__(self, name):
        self.path = ROOT / "build" / "release" / "perf" / name
        self.interposer = None

    @staticmethod
    def add_option(parser):
        parser.add_argument("--build", type=Path, default=ROOT / "build" / "shared",
                            help="build folder with the interposer (default: build/shared)")

    def find(self, build):
        """Ends the script if something is missing."""
        self.interposer = interposer_of(build.resolve())
        missing = [a.package for a in SUBJECTS.values() if not a.is_ours and not subjects.library_is_here(a)]
        missing += [str(file) for file in (self.interposer, self.path) if not file.exists()]
        if missing:
            sys.exit(f"{sys.argv[0]}: missing: {' '.join(missing)}")

    def run(self, arguments, allocator, prepare=None):
        """Returns what the program printed, or how it ended."""
        environment = clean_environment() | dict(allocator.variables)
        if allocator.preload:
            environment["LD_PRELOAD"] = str(self.interposer if allocator.is_ours else allocator.preload)
        child = subprocess.run([self.path, *map(str, arguments)], env=environment, text=True, check=False,
                               preexec_fn=prepare, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return child.stdout.strip() if child.returncode == 0 else f"status {child.returncode}"

    def run_all(self, arguments, prepare=None):
        return [self.run(arguments, allocator, prepare) for allocator in SUBJECTS.values()]


def table(heading, rows):
    lines = [f"| {heading} | {' | '.join(SUBJECTS)} |", f"| --- {'| ---: ' * len(SUBJECTS)}|"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows), ""])
