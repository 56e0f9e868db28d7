"""The kinds of processes that run.py runs. Each is a function that yields rows of its table."""
import collections
import concurrent.futures
import os
import signal
import subprocess

Row = collections.namedtuple("Row", "how runs failures result problems")
SECONDS = 120  # for one process of the short forms; an idle machine needs less than a tenth


class Programs:
    """Finds the programs of a build folder."""

    def __init__(self, folder):
        self.lives = os.path.join(folder, "tests/processes/process_lives")
        self.plugin_host = os.path.join(folder, "tests/processes/processes_plugin_host")
        self.plugin = os.path.join(folder, "tests/processes/libprocesses_plugin.so")
        self.clock = os.path.join(folder, "tests/processes/libjumping_clock.so")
        self.command = os.path.join(folder, "tools/tensorpool/tensorpool")
        self.interposer = os.path.join(folder, "lib/interpose/libtensorpool_interpose.so")

    def ways(self, minimum="1"):
        """Yields a name, an argument and variables for each way to get memory from the pool."""
        yield "linked", "pool", {}
        if os.path.exists(self.interposer):
            yield "interposed", "malloc", {"LD_PRELOAD": self.interposer,
                                           "TENSORPOOL_INTERPOSE_MIN": minimum}


def run(command, variables=None, seconds=SECONDS):
    """Runs a process; returns its output and what is wrong with it, or an empty text."""
    # A session of its own, so that nothing survives a time-out.
    process = subprocess.Popen(command, env={**os.environ, **(variables or {})},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        return output, f"no end within {seconds} s: {errors.strip()[-300:]}"
    if process.returncode == 0:
        return output, ""
    how = (f"signal {-process.returncode}" if process.returncode < 0
           else f"exit {process.returncode}")
    return output, f"{how}: {errors.strip()[-600:]}"


def run_all(commands, variables):
    """Runs many short processes, as many at a time as there are processors."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda command: run(command, variables)[1], commands))


def row(how, problems, result=""):
    found = [problem for problem in problems if problem]
    return Row(how, len(problems), len(found), result, found)


def one(how, command, variables, seconds, runs=1):
    """Runs one process that repeats something by itself."""
    output, problem = run(command, variables, seconds)
    return Row(how, runs, int(bool(problem)), " ".join(output.split()), [problem])


def plugins(programs, is_long):
    rounds = 500 if is_long else 20
    yield one("library inside the plugin", [programs.plugin_host, programs.plugin, str(rounds)], {},
              600, rounds)


KINDS = {"plugin": plugins}
