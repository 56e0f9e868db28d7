"""One run of a program, and its metrics as the system reports them."""

import os
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass

LOOK_SECONDS = 0.02  # interval between checks of the files that a process has mapped


class Failed(Exception):
    """A run that does not count; the text names the run and the reason."""


class Missing(Exception):
    """A workload that cannot run on this machine; the text says why."""


@dataclass(frozen=True)
class Metrics:
    cpu: float  # seconds, user and system
    system: float  # seconds
    faults: int  # minor page faults
    peak: int  # peak of resident memory, bytes
    # Bytes that pool and plan hold together, of the loop's lower bound; 0 without a plan.
    held: float = 0

    def as_dict(self):
        return asdict(self)


def mapped_files(pid):
    """Returns the names of the files that the process has mapped; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            return {line.split(maxsplit=5)[5].strip() for line in maps if "/" in line}
    except OSError:
        return set()


def has_ended(pid):
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def watch(pid, expected, foreign):
    """Waits until all files of `expected` are mapped, or the process has ended. Returns what is wrong,
    or an empty text. The loader maps the C library after preloaded libraries."""
    missing = expected
    while not has_ended(pid):
        files = mapped_files(pid)
        if any("/libc.so" in name for name in files):
            wrong = [part for part in foreign if any(part in name for name in files)]
            if wrong:
                return f"{wrong[0]} is loaded, which belongs to another allocator"
            missing = [part for part in expected if not any(part in name for name in files)]
            if not missing:
                return ""
        time.sleep(LOOK_SECONDS)
    return f"{missing[0]} was never loaded" if missing else "it ended before it could be checked"


def run(command, environment, expected=(), foreign=(), folder=None):
    """Runs a program. Returns its metrics and what it printed. Raises Failed if the program ends with
    an error, or did not map the files that it should have mapped. These are not checked if `expected`
    is None."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, cwd=folder,
                                   stdout=printed, stderr=errors)
        wrong = "" if expected is None else watch(process.pid, expected, foreign)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise Failed(f"{command[:2]} ended with {process.returncode}: "
                         f"{errors.read().strip()[-400:]}")
        if wrong:
            raise Failed(f"{command[:2]}: {wrong}")
        metrics = Metrics(usage.ru_utime + usage.ru_stime, usage.ru_stime, usage.ru_minflt,
                          usage.ru_maxrss * 1024)
        return metrics, printed.read()
