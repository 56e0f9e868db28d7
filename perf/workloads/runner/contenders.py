"""Who gives the memory: what each adds to a program's environment, and how it shows that it is there."""

import os
from dataclasses import dataclass
from pathlib import Path

# What could change how an allocator works, or which one it is.
TUNING = ("TENSORPOOL_", "LD_", "MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_", "MIMALLOC_", "JE_",
          "PYTHON", "NUMPY_", "PYTORCH_", "OMP_", "OPENBLAS_", "MKL_")
# The same for all: another number of threads would be another program. NumPy asks for huge pages
# for arrays from 4 MiB on by itself, from 1 on; that is its default, and stated all the same.
COMMON = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "1",
          "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
TUNED_JEMALLOC = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"
INTERPOSER = "libtensorpool_interpose.so"
REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Contender:
    key: str
    preload: str = ""  # the library that takes over malloc
    package: str = ""  # Debian's, of that library
    variables: tuple = ()
    is_ours: bool = False
    with_libraries: bool = False  # NumPy and PyTorch join by hooks of their own


ALL = {c.key: c for c in (
    Contender("glibc"),
    Contender("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    Contender("jemalloc", "libjemalloc.so.2", "libjemalloc2", (("MALLOC_CONF", TUNED_JEMALLOC),)),
    Contender("pool", INTERPOSER, is_ours=True, with_libraries=True),  # as `tensorpool run` does
    Contender("inside", is_ours=True),  # the work's own use of tensorpool, where it has one
    Contender("interposer", INTERPOSER, is_ours=True),  # malloc alone
    Contender("plain-jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    Contender("mimalloc", "libmimalloc.so.2", "libmimalloc2.0"),
)}
RIVALS = ("tcmalloc", "jemalloc")  # those that the aims are about
DEFAULT = ("glibc", "tcmalloc", "jemalloc", "pool", "inside")


def clean_environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith(TUNING)}
    return kept | COMMON


def interposer_of(build):
    return build / "lib" / "interpose" / INTERPOSER


def environment_of(contender, work, build, data):
    """All variables for one run of `work`."""
    variables = clean_environment() | dict(contender.variables) | {"WORKLOAD_DATA": str(data)}
    if contender.preload:
        own = contender.preload == INTERPOSER
        variables["LD_PRELOAD"] = str(interposer_of(build)) if own else contender.preload
    if contender.with_libraries and work.libraries:
        variables |= python_variables(work, build)
    return variables


def python_variables(work, build):
    """What `tensorpool run` sets for NumPy and PyTorch (tools/tensorpool/run/environment.cpp)."""
    return {"PYTHONPATH": str(REPOSITORY / "tools" / "tensorpool" / "run"),
            "TENSORPOOL_PYTHON_PARTS": ",".join(work.libraries),
            "TENSORPOOL_PYTHON_PACKAGE": str(build / "python" / "tensorpool")}


def expected_files(contender, work):
    """Parts of names of files that the process must have mapped."""
    if not contender.is_ours:
        return (contender.preload,) if contender.preload else ()
    files = ["libtensorpool.so"] + ([contender.preload] if contender.preload else [])
    if contender.with_libraries:
        files += [{"numpy": "_tensorpool.", "torch": "libtensorpool_torch.so"}[name]
                  for name in work.libraries]
    return tuple(files)


def foreign_files(contender, work):
    """Parts of names of files that it must not have mapped."""
    libraries = {c.preload for c in ALL.values() if c.preload}
    return tuple(libraries - set(expected_files(contender, work)))
