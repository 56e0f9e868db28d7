"""The workloads.

A workload is one program that takes 3 to 10 CPU seconds with glibc's malloc, with fixed seeds and
fixed numbers of threads. The last line that it prints begins with `result: ` and contains its result,
so that the results of all allocators can be compared. Workloads in Python are the files
`perf/workloads/<letter>_<name>.py`; with the argument `--prepare` they write their input to the
folder WORKLOAD_DATA, which is not measured. Workloads in C++ are programs of the build folder, which
use the pool directly if an argument says so.
"""

from dataclasses import dataclass
from pathlib import Path

from . import opencv
from .measure import Missing

HERE = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # Debian's, because another one on the PATH may lack NumPy


@dataclass(frozen=True)
class Aims:
    """Maximum ratios of ours to another's; None if there is no aim."""

    cpu_of_best: float = None
    cpu_of_glibc: float = None
    faults_of_best: float = None
    peak_of_best: float = None
    held_of_bound: float = None  # by pool and plan together, of the loop's lower bound


LARGE = Aims(cpu_of_best=0.97, faults_of_best=1.0, peak_of_best=1.0)
LARGE_WITH_GLIBC = Aims(0.97, 0.5, 1.0, 1.0)
LARGE_LOOP = Aims(0.97, faults_of_best=1.0, peak_of_best=1.0, held_of_bound=1.02)
SMALL = Aims(cpu_of_glibc=1.02)


# Files that workloads read or run, and the Debian packages that contain them.
NUMPY = ("/usr/lib/python3/dist-packages/numpy/__init__.py", "python3-numpy")
TORCH = ("/usr/lib/python3/dist-packages/torch/__init__.py", "python3-torch")
DECODER = ("/usr/bin/convert-im6.q16", "imagemagick-6.q16")
PICTURES = ("/usr/share/backgrounds/mate/nature", "mate-backgrounds")
DIGITS = ("/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz", "python3-sklearn")


@dataclass(frozen=True)
class Workload:
    letter: str
    title: str
    aims: Aims
    libraries: tuple = ()  # libraries that use the pool by a hook of their own
    is_program: bool = False  # whether it is a program of the build folder
    needs: tuple = ()  # pairs of a path and the package that contains it
    has_loop: bool = False  # whether its loop can be served from plans


ALL = {w.letter: w for w in (
    Workload("A", "convolutional denoiser, PyTorch", LARGE_WITH_GLIBC, ("numpy", "torch"),
         needs=(NUMPY, TORCH, DECODER, PICTURES), has_loop=True),
    Workload("B", "character transformer, PyTorch", LARGE_LOOP, ("numpy", "torch"),
         needs=(NUMPY, TORCH), has_loop=True),
    Workload("C", "digits classifier, C++ with libtorch", SMALL, is_program=True, needs=(DIGITS,)),
    Workload("D", "OpenCV pipeline of tools/run", LARGE_WITH_GLIBC, is_program=True,
         needs=(PICTURES,)),
    Workload("E", "photo pipeline, NumPy", LARGE, ("numpy",), needs=(NUMPY, DECODER, PICTURES),
         has_loop=True),
    Workload("F", "multilayer perceptron, NumPy, small arrays", SMALL, ("numpy",),
             needs=(NUMPY, DIGITS)),
    Workload("G", "inference with a U-Net, PyTorch", LARGE_LOOP, ("numpy", "torch"),
         needs=(NUMPY, TORCH, DECODER, PICTURES), has_loop=True),
)}


def check_packages(workload):
    """Raises Missing, with the names of all packages of the workload that are not installed."""
    missing = [package for path, package in workload.needs if not Path(path).exists()]
    if missing:
        raise Missing(f"install the Debian packages {' '.join(missing)}")


def command_of(workload, allocator, build, data):
    """Returns the arguments of the command. Raises Missing."""
    is_inside = allocator.key == "inside"
    if allocator.with_plan and not workload.has_loop:
        raise Missing("its loop cannot be served from plans")
    if workload.letter == "D":
        return opencv.command(build, data, is_inside)
    if workload.is_program:
        return [str(program_of(workload, build)), *(["--pool"] if is_inside else [])]
    if is_inside:
        raise Missing("it does not use tensorpool directly")
    return [PYTHON, str(script_of(workload))]


def program_of(workload, build):
    folder = build / "perf" / "workloads"
    for path in sorted(folder.glob(f"{workload.letter.lower()}_*")):
        if path.is_file() and path.stat().st_mode & 0o100:
            return path
    raise Missing(f"program {workload.letter.lower()}_… is missing in {folder}")


def script_of(workload):
    found = sorted(HERE.glob(f"{workload.letter.lower()}_*.py"))
    if not found:
        raise Missing(f"file {workload.letter.lower()}_….py is missing in {HERE}")
    return found[0]


def prepare_command(workload):
    """Returns the command that fills WORKLOAD_DATA, or None."""
    return None if workload.is_program else [PYTHON, str(script_of(workload)), "--prepare"]


def result_of(workload, printed, data):
    """Returns the workload's result from what it printed, or None if there is none."""
    if workload.letter == "D":
        return opencv.result(printed, data)
    last = printed.strip().rsplit("\n", 1)[-1]
    return last[len("result: "):] if last.startswith("result: ") else None
