"""What is run.

A work is one program that takes 3 to 10 CPU seconds with glibc's malloc, with fixed seeds and fixed
numbers of threads. The last line that it prints begins with `result: ` and says what it computed,
so that all contenders' can be compared. Those of Python and PyTorch lie beside `compare`, one file
each, `<letter>_<name>.py`; with the argument `--prepare` they put what they read into the folder
WORKLOAD_DATA, which is not measured. Those of C++ are programs of the build folder, which join the
pool by themselves when they are told to.
"""

from dataclasses import dataclass
from pathlib import Path

from . import opencv
from .measure import Missing

HERE = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # Debian's: the first on the PATH need not have NumPy


@dataclass(frozen=True)
class Aims:
    """The most of ours relative to another's; None where there is no aim."""

    cpu_of_best: float = None
    cpu_of_glibc: float = None
    faults_of_best: float = None
    peak_of_best: float = None


LARGE = Aims(cpu_of_best=0.97, faults_of_best=1.0, peak_of_best=1.0)
LARGE_WITH_GLIBC = Aims(0.97, 0.5, 1.0, 1.0)
SMALL = Aims(cpu_of_glibc=1.02)


# What a work reads or runs, and the Debian package that has it.
NUMPY = ("/usr/lib/python3/dist-packages/numpy/__init__.py", "python3-numpy")
TORCH = ("/usr/lib/python3/dist-packages/torch/__init__.py", "python3-torch")
DECODER = ("/usr/bin/convert-im6.q16", "imagemagick-6.q16")
PICTURES = ("/usr/share/backgrounds/mate/nature", "mate-backgrounds")
DIGITS = ("/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz", "python3-sklearn")


@dataclass(frozen=True)
class Work:
    letter: str
    title: str
    aims: Aims
    libraries: tuple = ()  # that join the pool by a hook of their own
    is_program: bool = False  # of the build folder
    needs: tuple = ()  # pairs of a path and the package that has it


ALL = {w.letter: w for w in (
    Work("A", "convolutional denoiser, PyTorch", LARGE_WITH_GLIBC, ("numpy", "torch"),
         needs=(NUMPY, TORCH, DECODER, PICTURES)),
    Work("B", "character transformer, PyTorch", LARGE, ("numpy", "torch"), needs=(NUMPY, TORCH)),
    Work("C", "digits classifier, C++ with libtorch", SMALL, is_program=True, needs=(DIGITS,)),
    Work("D", "OpenCV pipeline of the main job", LARGE_WITH_GLIBC, is_program=True,
         needs=(PICTURES,)),
    Work("E", "photo pipeline, NumPy", LARGE, ("numpy",), needs=(NUMPY, DECODER, PICTURES)),
    Work("F", "multilayer perceptron, NumPy, small arrays", SMALL, ("numpy",), needs=(NUMPY, DIGITS)),
)}


def check_packages(work):
    """Raises Missing, which names each package of the work that is not installed."""
    missing = [package for path, package in work.needs if not Path(path).exists()]
    if missing:
        raise Missing(f"install the Debian packages {' '.join(missing)}")


def command_of(work, contender, build, data):
    """The words of the command. Raises Missing."""
    is_inside = contender.key == "inside"
    if work.letter == "D":
        return opencv.command(build, data, is_inside)
    if work.is_program:
        return [str(program_of(work, build)), *(["--pool"] if is_inside else [])]
    if is_inside:
        raise Missing("it has no use of tensorpool of its own")
    return [PYTHON, str(script_of(work))]


def program_of(work, build):
    folder = build / "perf" / "workloads"
    for path in sorted(folder.glob(f"{work.letter.lower()}_*")):
        if path.is_file() and path.stat().st_mode & 0o100:
            return path
    raise Missing(f"no program {work.letter.lower()}_… in {folder}")


def script_of(work):
    found = sorted(HERE.glob(f"{work.letter.lower()}_*.py"))
    if not found:
        raise Missing(f"no file {work.letter.lower()}_….py in {HERE}")
    return found[0]


def prepare_command(work):
    """What fills WORKLOAD_DATA, or None."""
    return None if work.is_program else [PYTHON, str(script_of(work)), "--prepare"]


def result_of(work, printed, data):
    """The work's result, from what it printed."""
    if work.letter == "D":
        return opencv.result(printed, data)
    last = printed.strip().rsplit("\n", 1)[-1]
    return last[len("result: "):] if last.startswith("result: ") else None
