"""The allocators: what each adds to a program's environment, and which files show that it is loaded."""

import os
from dataclasses import dataclass
from pathlib import Path

# Prefixes of variables that could change how an allocator works, or which allocator is used.
TUNING = ("TENSORPOOL_", "LD_", "MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_", "MIMALLOC_", "JE_",
          "PYTHON", "NUMPY_", "PYTORCH_", "OMP_", "OPENBLAS_", "MKL_")
# Variables that are the same for all allocators. With another number of threads it would be another
# program. NUMPY_MADVISE_HUGEPAGE=1 is NumPy's default: NumPy requests huge pages for arrays of 4 MiB
# and more.
COMMON = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "1",
          "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
TUNED_JEMALLOC = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"
INTERPOSER = "libtensorpool_interpose.so"
REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Allocator:
    key: str
    preload: str = ""  # library that replaces malloc
    package: str = ""  # Debian package of that library
    variables: tuple = ()
    is_ours: bool = False
    with_libraries: bool = False  # NumPy and PyTorch use the pool by hooks of their own
    with_plan: bool = False  # loops are served from plans (loops.py)


ALL = {a.key: a for a in (
    Allocator("glibc"),
    Allocator("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    Allocator("jemalloc", "libjemalloc.so.2", "libjemalloc2", (("MALLOC_CONF", TUNED_JEMALLOC),)),
    Allocator("pool", INTERPOSER, is_ours=True, with_libraries=True),  # as `tensorpool run` does
    # The same, with the two lines of tensorpool.planned in the program.
    Allocator("plan", INTERPOSER, is_ours=True, with_libraries=True, with_plan=True),
    # The pool with the samples of the heap profile.
    Allocator("profiled", INTERPOSER, variables=(("TENSORPOOL_PROFILE", "on"),), is_ours=True,
              with_libraries=True),
    # The pool with a level of checks.
    *(Allocator(checks, INTERPOSER, variables=(("TENSORPOOL_CHECKS", checks),), is_ours=True,
                with_libraries=True) for checks in ("sampled", "hardened")),
    Allocator("inside", is_ours=True),  # the program's own use of tensorpool, if any
    Allocator("interposer", INTERPOSER, is_ours=True),  # malloc alone
    Allocator("plain-jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    Allocator("mimalloc", "libmimalloc.so.2", "libmimalloc2.0"),
)}
RIVALS = ("tcmalloc", "jemalloc")  # the aims are relative to these
DEFAULT = ("glibc", "tcmalloc", "jemalloc", "pool", "inside")


def clean_environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith(TUNING)}
    return kept | COMMON


def interposer_of(build):
    return build / "lib" / "interpose" / INTERPOSER


def environment_of(allocator, workload, build, data):
    """Returns all variables for one run of `workload`."""
    variables = clean_environment() | dict(allocator.variables) | {"WORKLOAD_DATA": str(data)}
    if allocator.preload:
        own = allocator.preload == INTERPOSER
        variables["LD_PRELOAD"] = str(interposer_of(build)) if own else allocator.preload
    if allocator.with_libraries and workload.libraries:
        variables |= python_variables(workload, build)
    if allocator.with_plan:
        variables["WORKLOAD_PLAN"] = str(held_file(data))
        variables["PYTHONPATH"] += f":{build / 'python'}"
    return variables


def held_file(data):
    """Returns the file to which a loop that is served from a plan writes what memory is held."""
    return data / "held.json"


def python_variables(workload, build):
    """Returns what `tensorpool run` sets for NumPy and PyTorch (see its launch.cpp)."""
    return {"PYTHONPATH": str(REPOSITORY / "tools" / "tensorpool" / "common" / "launch"),
            "TENSORPOOL_PYTHON_PARTS": ",".join(workload.libraries),
            "TENSORPOOL_PYTHON_PACKAGE": str(build / "python" / "tensorpool")}


def expected_files(allocator, workload):
    """Returns parts of the names of files that the process must have mapped."""
    if not allocator.is_ours:
        return (allocator.preload,) if allocator.preload else ()
    files = ["libtensorpool.so"] + ([allocator.preload] if allocator.preload else [])
    if allocator.with_libraries:
        files += [{"numpy": "_tensorpool.", "torch": "libtensorpool_torch.so"}[name]
                  for name in workload.libraries]
    return tuple(files)


def foreign_files(allocator, workload):
    """Returns parts of the names of files that the process must not have mapped."""
    libraries = {a.preload for a in ALL.values() if a.preload}
    return tuple(libraries - set(expected_files(allocator, workload)))
