"""The machine and the versions that a table belongs to."""

import sys
from pathlib import Path

from . import allocators, rounds

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
sys.path.insert(0, str(HERE.parents[1]))  # perf/, for perf/compare's module about the machine

from comparison import machine  # noqa: E402
from comparison.machine import package_version  # noqa: E402

PACKAGES = ("python3-numpy", "python3-torch", "libopenblas0-pthread", "libopencv-core406", "libc6")


def lines(chosen):
    libraries = sorted({allocator.package for allocator in chosen if allocator.package})
    packages = [p for p in PACKAGES if "unknown" not in package_version(p)]
    thp = machine.first_match("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]")
    cpu = machine.first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$")
    memory = int(machine.first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) / 2**20
    common = allocators.COMMON
    return [
        f"{cpu}, {machine.os.cpu_count()} cores, {memory:.0f} GiB; "
        f"Linux {machine.platform.release()}; transparent huge pages: {thp}; "
        f"load at the start {rounds.load():.1f}",
        f"tensorpool {machine.commit(REPOSITORY)}; "
        + ", ".join(f"{package} {package_version(package)}" for package in libraries),
        ", ".join(f"{package} {package_version(package)}" for package in packages),
        ", ".join(f"{name}={common[name]}" for name in common
                  if name.endswith(("THREADS", "HUGEPAGE")))
        + f"; jemalloc: MALLOC_CONF={allocators.TUNED_JEMALLOC}",
    ]
