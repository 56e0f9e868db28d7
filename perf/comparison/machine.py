"""The machine and the versions that a table belongs to."""

import os
import platform
import re
import subprocess
from pathlib import Path


def first_match(path, pattern):
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else "unknown"


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def package_version(package):
    return output_of("dpkg-query", "-W", "-f=${Version}", package) or "version unknown"


def commit(folder):
    number = output_of("git", "-C", str(folder), "rev-parse", "--short", "HEAD") or "unknown"
    changed = output_of("git", "-C", str(folder), "status", "--porcelain", "--", "lib", "include")
    return number + (" with changes" if changed else "")


def heading(folder, subjects, context):
    """Returns lines that name the machine and the versions."""
    cpu = first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$")
    memory = int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) / 2**20
    thp = first_match("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]")
    cores = len(os.sched_getaffinity(0))
    libraries = [f"{s.key} {package_version(s.package)}" for s in subjects if s.preload]
    return [
        f"{cpu}, {cores} cores, {memory:.0f} GiB; Linux {platform.release()}; "
        f"transparent huge pages: {thp}",
        f"tensorpool {commit(folder)}; compiler {context['compiler']}, "
        f"Boost {context['boost'].replace('_', '.')}",
        ", ".join([f"glibc {context['glibc']}", *libraries]),
    ]
