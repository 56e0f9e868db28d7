"""The allocators that perf/compare measures."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    key: str
    label: str  # heading of its column
    programs: tuple  # ends of program names, after the question; the fastest program counts
    preload: str = ""  # library that replaces malloc
    package: str = ""  # Debian package of that library
    kind: str = "rival"  # or "ours", "floor", or "one size" if it cannot serve other sizes


FLOOR = Subject("floor", "floor", ("_floor", "_nothing"), kind="floor")
OURS = Subject("ours", "ours", ("_perf",), kind="ours")
MALLOC = ("_peer_malloc", "_peer_sized_delete")
ALL = (
    FLOOR,
    OURS,
    Subject("glibc", "glibc", ("_peer_malloc",)),
    Subject("tcmalloc", "tcmal.", MALLOC, "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    Subject("mimalloc", "mimal.", MALLOC, "libmimalloc.so.2", "libmimalloc2.0"),
    Subject("jemalloc", "jemal.", MALLOC, "libjemalloc.so.2", "libjemalloc2"),
    Subject("boost_pool", "boost", ("_peer_boost_pool",), kind="one size"),
    Subject("pmr", "pmr", ("_peer_pmr",)),
)


def library_is_here(subject):
    """Returns whether the loader can find the library, or True if none is needed."""
    if not subject.preload:
        return True
    for ldconfig in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            known = subprocess.run([ldconfig, "-p"], capture_output=True, text=True).stdout
        except OSError:
            continue
        return f"\t{subject.preload} " in known
    return False


def programs_of(subject, question, build):
    """Returns the programs for a question and a subject that were built."""
    folders = (build / "perf", build / "perf" / "peers")
    paths = (folder / f"{question}{end}" for end in subject.programs for folder in folders)
    return [path for path in paths if Path(path).is_file()]
