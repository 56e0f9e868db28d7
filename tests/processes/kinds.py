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
        self.library = os.path.join(folder, "lib/libtensorpool.so")

    def ways(self, minimum="1"):
        """Yields a name, an argument and variables for each way to get memory from the pool."""
        yield "linked", "pool", {}
        # A static build has a pool of its own beside the interposer's, and counts that one.
        if os.path.exists(self.interposer) and os.path.exists(self.library):
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


# "profiled" samples every allocation for the heap profile.
MODES = {"off": {"TENSORPOOL_CHECKS": "off"},
         "profiled": {"TENSORPOOL_CHECKS": "off", "TENSORPOOL_PROFILE": "all"},
         "hardened": {"TENSORPOOL_CHECKS": "hardened"},
         "sampled": {"TENSORPOOL_CHECKS": "sampled", "TENSORPOOL_PROFILE": "all",
                     "TENSORPOOL_GUARD_SHARE": "1"}}
USUAL = ("off", "profiled", "hardened")
ENDS = ("return", "exit", "quick_exit", "_exit", "pthread_exit")


def in_all_ways(programs, minimum="1", modes=USUAL):
    """Yields a name, the beginning of a command and variables for each way and each mode."""
    for way, source, variables in programs.ways(minimum):
        for mode in modes:
            yield f"{way}, {mode}", [programs.lives, source], {**variables, **MODES[mode]}


def forks(programs, is_long):
    count = 1000 if is_long else 40
    for how, begin, variables in in_all_ways(programs):
        yield one(how, [*begin, "fork", str(count)], variables, 600, count)


def first_forks(programs, is_long):
    """The interposer's minimum keeps what the C library allocates before main out of the pool."""
    for how, begin, variables in in_all_ways(programs, "1MiB"):
        commands = [[*begin, "first", str(seed)] for seed in range(1000 if is_long else 30)]
        yield row(how, run_all(commands, variables))


def ends(programs, is_long):
    for how, begin, variables in in_all_ways(programs):
        for end in ENDS:
            commands = [[*begin, "end", end, str(seed)] for seed in range(1000 if is_long else 8)]
            yield row(f"{how}, {end}", run_all(commands, variables))


def threads(programs, is_long):
    for how, begin, variables in in_all_ways(programs):
        count = 10240 if is_long else 1000
        yield one(how, [*begin, "threads", str(count)], variables, 600)


def plugins(programs, is_long):
    rounds = 500 if is_long else 20
    yield one("library inside the plugin", [programs.plugin_host, programs.plugin, str(rounds)], {},
              600, rounds)


def small_stacks(programs, is_long):
    for how, begin, variables in in_all_ways(programs, modes=MODES):
        commands = [[*begin, "small_stacks"]] * (100 if is_long else 2)
        yield row(how, run_all(commands, variables))
        output, problem = run([*begin, "measure_stacks"], variables)
        yield Row(f"{how}, measured", 1, int(bool(problem)), " ".join(output.split()), [problem])


def clocks(programs, is_long):
    """A short retention period, so that the background trimmer has work after each jump."""
    for how, begin, variables in in_all_ways(programs, modes=MODES):
        preload = f"{variables.get('LD_PRELOAD', '')} {programs.clock}".strip()
        yield one(how, [*begin, "clock", "20" if is_long else "1"],
                  {**variables, "LD_PRELOAD": preload, "TENSORPOOL_RETAIN_MS": "50",
                   "TENSORPOOL_RETAIN_BACKGROUND": "on", "TENSORPOOL_GUARD_SHARE": "0.2"}, 600)


KINDS = {"fork": forks, "first-fork": first_forks, "end": ends, "threads": threads, "plugin": plugins,
         "small-stack": small_stacks, "clock": clocks}
