#!/usr/bin/python3
"""Develops photographs (denoise, sharpen, boost detail, in floats, with OpenCV) with memory from malloc,
from tcmalloc if it is installed, from the pool, and from a Context (arena and scratch), each in a process
of its own. Checks that the results are identical, and prints the resource usage of each, and the scratch
memory of each operator."""

import argparse
import filecmp
import os
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays as it is
REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "perf" / "workloads"))
from runner import measure  # noqa: E402

BUILD = REPOSITORY / "build" / "release"
NATURE = Path("/usr/share/backgrounds/mate/nature")  # of Debian's package mate-backgrounds
TCMALLOC = "libtcmalloc_minimal.so.4"
NO_TCMALLOC = f"tcmalloc is not compared: {TCMALLOC} cannot be loaded here (Debian package libtcmalloc-minimal4)"


@dataclass
class Run:
    metrics: measure.Metrics
    pixels: dict = field(default_factory=dict)  # of each picture that was developed, by its number
    failures: dict = field(default_factory=dict)  # reasons, by the picture's number
    report: str = ""  # of the pool or the Context


@dataclass
class Allocator:
    name: str  # in the table, and of its folder of results
    memory: str  # malloc, pool or context: the first argument of the program
    preload: str = ""  # library that provides malloc; empty: the C library
    runs: list = field(default_factory=list)

    def median(self, metric):
        return statistics.median(getattr(run.metrics, metric) for run in self.runs)


def number_up_to(limit):
    def parse(text):
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= limit:
            raise argparse.ArgumentTypeError(f'"{text}" is not a number from 1 to {limit}')
        return int(text)
    return parse


def arguments():
    parser = argparse.ArgumentParser(
        prog="tensorpool_photos", description=__doc__.replace("\n", " "),
        epilog="Exit status: 0; 1 if a picture or a run failed or results differ; 2 for wrong usage.")
    parser.add_argument("pictures", nargs="*", metavar="PICTURE|FOLDER",
                        help="JPEG files, or folders of them; default: the nature photographs in "
                             "Debian's package mate-backgrounds")
    parser.add_argument("--rounds", type=number_up_to(99), default=3, metavar="N",
                        help="run everything N times and print medians; default 3")
    parser.add_argument("--threads", type=number_up_to(1024), default=1, metavar="N",
                        help="threads that OpenCV may use; default 1")
    parser.add_argument("--frugal", action="store_true",
                        help="use the Context's operators, which hold less memory, for all")
    parser.add_argument("--output", type=Path, default=BUILD / "photos", metavar="DIR",
                        help="folder for the results, with a folder for each allocator; default %(default)s")
    parser.add_argument("--program", type=Path, default=BUILD / "tools" / "photos" / "tensorpool_photos",
                        help=argparse.SUPPRESS)
    return parser.parse_args()


def pictures_in(folder):
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        raise measure.Failed(f"{folder}: contains no .jpg or .jpeg file")
    return files


def find_pictures(named):
    """Returns the named files, and those in the named folders. Without names, the nature photographs."""
    if not named and not NATURE.is_dir():
        raise measure.Failed(f"{NATURE}: not found; install the package mate-backgrounds, or name pictures")
    found = []
    for path in map(Path, named or [NATURE]):
        found += pictures_in(path) if path.is_dir() else [path]
    return found


def result_names(files):
    """Returns the name of each picture's result: its own, with a number if two would be equal."""
    names = []
    for file in files:
        name, number = f"{file.stem}.jpg", 2
        while name in names:
            name, number = f"{file.stem}-{number}.jpg", number + 1
        names.append(name)
    return names


def read_run(metrics, printed, expected_preload):
    """Reads what the program printed: the library of malloc, a line for each picture, and a report."""
    run = Run(metrics)
    for line in printed.splitlines():
        kind, _, rest = line.partition(" ")
        number, _, value = rest.partition(" ")
        if kind == "preload":
            if bool(rest) != bool(expected_preload):
                raise measure.Failed(f"malloc was expected from {expected_preload or 'the C library'}, "
                                     f"but is from {rest or 'the C library'}")
        elif kind == "done":
            run.pixels[int(number)] = int(value)
        elif kind == "failed":
            run.failures[int(number)] = value
        else:
            run.report += line + "\n"
    return run


class Comparison:
    def __init__(self, options):
        self.options = options
        self.files = find_pictures(options.pictures)
        self.names = result_names(self.files)
        self.complaints = set()  # already printed
        self.differ = False
        self.allocators = [Allocator("malloc", "malloc"), Allocator("tcmalloc", "malloc", TCMALLOC),
                           Allocator("tensorpool", "pool"), Allocator("context", "context")]
        if not self.has_tcmalloc():
            del self.allocators[1]
        for allocator in self.allocators:
            self.refuse_to_replace(allocator)

    def run_program(self, allocator, pictures):
        kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        environment = kept | ({"LD_PRELOAD": allocator.preload} if allocator.preload else {})
        command = [self.options.program, allocator.memory, "frugal" if self.options.frugal else "plain",
                   str(self.options.threads), *map(str, pictures)]
        return read_run(*measure.run(command, environment, None), allocator.preload)

    def has_tcmalloc(self):
        try:
            self.run_program(self.allocators[1], [])
        except measure.Failed:  # such as under AddressSanitizer, which must be loaded first
            return False
        return True

    def results_of(self, allocator):
        return [self.options.output / allocator.name / name for name in self.names]

    def refuse_to_replace(self, allocator):
        for file, result in zip(self.files, self.results_of(allocator)):
            if file.exists() and result.exists() and file.samefile(result):
                raise measure.Failed(f"{file}: would be overwritten by its result; choose another --output")

    @staticmethod
    def show(text, passing=False):
        """Prints a line; one that the next line replaces only on a terminal."""
        if sys.stdout.isatty():
            print(f"\r\033[K{text}", end="" if passing else "\n", flush=True)
        elif not passing:
            print(text, flush=True)

    def complain(self, text):
        self.show("", passing=True)
        print(f"tensorpool_photos: {text}", file=sys.stderr)

    def run_one(self, number, allocator):
        label = f"  round {number + 1:<2}  {allocator.name:<11}"
        self.show(label, passing=True)
        results = self.results_of(allocator)
        results[0].parent.mkdir(parents=True, exist_ok=True)
        run = self.run_program(allocator, [path for pair in zip(self.files, results) for path in pair])
        self.show(f"{label}{run.metrics.cpu:8.2f} s CPU  {run.metrics.faults:>12,} page faults")
        for i, reason in run.failures.items():
            text = f"{self.files[i]}: {reason}"
            if text not in self.complaints:
                self.complain(f"{text} (first seen with memory from {allocator.name})")
            self.complaints.add(text)
        allocator.runs.append(run)

    def compare_results(self):
        first = self.allocators[0]
        for allocator in self.allocators[1:]:
            for i, pair in enumerate(zip(self.results_of(first), self.results_of(allocator))):
                developed = all(i in one.runs[-1].pixels for one in (first, allocator))
                if developed and not filecmp.cmp(*pair, shallow=False):
                    self.differ = True
                    self.complain(f"{pair[1]}: differs from {pair[0]}, expected the same bytes")

    def hold(self):
        """Runs all rounds. Each begins with another allocator, so that none profits from its position."""
        count, rounds = len(self.files), self.options.rounds
        self.show(f"{counted(count, 'picture')}, {counted(rounds, 'round')}, with memory from "
                  + ", ".join(allocator.name for allocator in self.allocators))
        if len(self.allocators) < 4:
            self.show(NO_TCMALLOC)
        self.show("")
        for number in range(rounds):
            turn = number % len(self.allocators)
            for allocator in self.allocators[turn:] + self.allocators[:turn]:
                self.run_one(number, allocator)
            self.compare_results()
        print(summary(self))
        return 1 if self.complaints or self.differ else 0


def counted(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ratio(part, whole):
    """Formats a ratio with two decimals, or three below 0.01."""
    return f"{part / whole:.{3 if part < 0.01 * whole else 2}f}" if whole > 0 else "-"


def table(allocators):
    lines = [f"{'memory from':<14} {'CPU seconds':>18} {'page faults':>21} {'peak memory':>20}"]
    first = allocators[0]
    for one in allocators:
        cpu, faults, peak = (one.median(metric) for metric in ("cpu", "faults", "peak"))
        lines.append(f"{one.name:<14} {cpu:11.2f} {ratio(cpu, first.median('cpu')):>6} {int(faults):14,} "
                     f"{ratio(faults, first.median('faults')):>6} {int(peak) >> 20:9,} MiB "
                     f"{ratio(peak, first.median('peak')):>6}")
    return "\n".join(lines)


def verdict(pool, malloc):
    cpu, faults, peak = (ratio(pool.median(metric), malloc.median(metric))
                         for metric in ("cpu", "faults", "peak"))
    # A ratio that is printed as 1.00 is no saving.
    saved = pool.median("cpu") < 0.995 * malloc.median("cpu")
    return (f"The pool{'' if saved else ' saved no CPU time here: it'} took {cpu} of the CPU time and {faults} "
            f"of the page faults of malloc,\nwith {peak} of its peak memory.")


def summary(comparison):
    """Returns the text at the end. The savings are stated only if all developed the same pictures."""
    allocators, options = comparison.allocators, comparison.options
    malloc = allocators[0]
    last = {allocator.memory: allocator.runs[-1] for allocator in allocators}
    done = malloc.runs[0].pixels.keys()
    same_work = all(run.pixels.keys() == done for allocator in allocators for run in allocator.runs)
    pixels = malloc.runs[-1].pixels
    text = (f"\n{len(pixels)} of {len(comparison.files)} pictures, {sum(pixels.values()) * 1e-6:.1f} megapixels; "
            f"median of {len(malloc.runs)}, ratio to malloc\n\n{table(allocators)}\n")
    if not options.frugal:
        text += ("\nThe Context's denoise and boost_detail hold less memory at once than those of the others;\n"
                 "with --frugal, all use the same.\n")
    text += (f"\nThe pool's own report:\n\n{last['pool'].report}"
             "\nScratch memory of each operator in the Context, and totals of the Context:\n\n"
             f"{last['context'].report}")
    if comparison.differ:
        compared = "DIFFER, as reported above"
    elif not same_work:
        compared = "that all produced are identical"
    else:
        compared = "are identical" if done else "are none"
    text += f"\nThe results {compared}; they are in\n{options.output}.\n\n"
    if not same_work:
        return text + "Savings cannot be stated: not all allocators developed the same pictures."
    if not done:
        return text + "Savings cannot be stated: no picture was developed."
    return text + verdict(next(one for one in allocators if one.memory == "pool"), malloc)


def main():
    try:
        return Comparison(arguments()).hold()
    except (measure.Failed, OSError) as error:
        print(f"tensorpool_photos: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
