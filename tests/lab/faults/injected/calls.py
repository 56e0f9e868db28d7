#!/usr/bin/env python3
"""Lets system calls of real programs fail, one after another, and prints a table.

usage: calls.py [--long] [--only NAME] INTERPOSER PROGRAM [COMMAND]
       calls.py --list INTERPOSER PROGRAM [COMMAND]

INTERPOSER is libtensorpool_interpose.so, PROGRAM faults_interposed_work, and COMMAND `tensorpool`,
which reads this process and a recording of PROGRAM. strace lets the k-th call fail: `once`, `some` (20 in a row), and `always`
(from then on). Calls of the loader, before any program runs, are left alone. The short form injects
a few of each; --long injects up to 40. --only injects into the program of that name only; --list prints the
names.

A run fails if it ends by a signal or after 60 s, or if it exits with 0 and another output. Only the
program that expects failures must exit with 0. Exits with 77 where strace is missing or not
permitted.
"""
import argparse
import collections
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

ERRORS = {"mmap": "ENOMEM", "munmap": "ENOMEM", "mprotect": "ENOMEM", "madvise": "EINVAL",
          "mremap": "ENOMEM", "mlock": "ENOMEM", "memfd_create": "EMFILE",
          "ftruncate": "ENOSPC", "openat": "EMFILE", "read": "EIO", "pread64": "EIO", "fstat": "EIO",
          "newfstatat": "EIO", "fcntl": "EINVAL", "clone3": "EAGAIN", "membarrier": "EPERM",
          "sched_getaffinity": "EPERM", "get_mempolicy": "EPERM", "prlimit64": "EPERM",
          "getdents64": "EIO", "readlink": "EACCES", "rt_sigaction": "EINVAL", "socket": "EMFILE",
          "ioctl": "ENOTTY", "write": "ENOSPC", "mincore": "ENOMEM", "sendmsg": "EPERM",
          "connect": "ECONNREFUSED", "lseek": "EINVAL", "poll": "ENOMEM", "flock": "ENOLCK"}
# The kernel's brk has no errors: it returns an end that is not the wanted one.
EFFECTS = {"brk": "retval=0", **{call: f"error={error}" for call, error in ERRORS.items()}}
MODES = {"once": "{}", "some": "{}..{}", "always": "{}+"}
SECONDS = 60
# What a program may lack so that it cannot go on, although no call of the library failed.
OF_THE_PROGRAM = {"write"}

Case = collections.namedtuple("Case", "name command environment must_work same_output calls")


def preloaded(library, **more):
    return {"LD_PRELOAD": library, "TENSORPOOL_INTERPOSE_MIN": "1", **more}


PYTHON = ("import hashlib, threading; a = [bytes([i % 251]) * (i * 37 % 50000) for i in range(600)]; "
          "b = {i: str(i) * 20 for i in range(5000)}; "
          "t = [threading.Thread(target=lambda: sorted(b)) for _ in range(2)]; "
          "[x.start() for x in t]; [x.join() for x in t]; "
          "print(hashlib.sha256(b''.join(a)).hexdigest(), len(''.join(b.values())))")
MEMORY = ["mmap", "munmap", "mprotect", "madvise", "mremap", "memfd_create", "ftruncate",
          "membarrier", "sched_getaffinity", "get_mempolicy", "prlimit64", "brk", "clone3", "fcntl"]


def cases(arguments, recording, process):
    library = arguments.interposer
    made = [Case("interposed C" + more, [arguments.program], preloaded(library, **environment),
                 True, True, MEMORY + ["openat", "read", "fstat"])
            for more, environment in [("", {}), (", full", {"TENSORPOOL_CHECKS": "full"}),
                                      (", sampled", {"TENSORPOOL_CHECKS": "sampled"}),
                                      (", hardened", {"TENSORPOOL_CHECKS": "hardened"})]]
    made.append(Case("interposed python3", ["/usr/bin/python3", "-I", "-S", "-c", PYTHON],
                     preloaded(library), False, True,
                     # If a call of its own fails, Python has no standard output.
                     [call for call in MEMORY if call != "fcntl"]))
    if arguments.command:
        made += [Case(name, [arguments.command, *words], {}, False, same, list(EFFECTS))
                 for name, words, same in [
                     ("top", ["top", "--json", "-n", "1"], False),
                     ("stat", ["stat", "-p", process, "-n", "1"], False),
                     ("doctor", ["doctor"], False),
                     ("trim", ["trim", "-p", process, "--for", "200ms"], False),
                     ("inspect", ["inspect", recording], True)]]
    return made


def traced(case, call, mode=None, when=0, loaded=None):
    """Runs the case; returns (exit code or None, output, errors, lines of strace)."""
    inject = []
    if mode:
        inject = ["-e", f"inject={call}:{EFFECTS[call]}:when="
                  + MODES[mode].format(when, when + 19)]
    with tempfile.NamedTemporaryFile("r", suffix=".strace", errors="replace") as log:
        calls = call if loaded is None else f"{call},{loaded}"
        variables = [word for name, value in case.environment.items()
                     for word in ("-E", f"{name}={value}")]
        command = case.command + ([mode or "once"] if case.must_work else [])
        # A session of its own, so that nothing survives a time-out.
        process = subprocess.Popen(
            ["strace", "-f", "-qq", "-e", "signal=none", "-o", log.name, "-e", f"trace={calls}",
             *inject, *variables, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        try:
            output, errors = process.communicate(timeout=SECONDS)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, errors = process.communicate()
            code = None
        return code, output, errors.decode(errors="replace"), log.read().splitlines()


def calls_to_refuse(case, call, count):
    """Returns numbers of calls after the loader's, evenly spread."""
    lines = traced(case, call, loaded="munmap")[3]
    # The loader unmaps its cache of libraries at last.
    last = next((i for i, line in enumerate(lines) if " munmap(" in line), -1)
    names = [line.split("(")[0].split()[-1] for line in lines if "(" in line and "resumed>" not in line]
    before = sum(name == call for name in names[:last + 1])
    total = sum(name == call for name in names)
    numbers = list(range(before + 1, total + 1))
    if len(numbers) > count:
        numbers = [numbers[i * len(numbers) // count] for i in range(count)]
    return numbers


def comparable(output):
    """Returns the output without the line of `inspect` that depends on the time of a search."""
    return [line for line in output.splitlines() if not line.startswith(b"plan needs ")]


def verdict(case, mode, expected, result):
    """Returns what is wrong with a run, or an empty text."""
    code, output, errors, _ = result
    if code is None:
        return f"no end within {SECONDS} s"
    if code < 0 or code > 128:
        return f"signal {-code if code < 0 else code - 128}"
    if case.must_work and code != 0:
        return f"exit {code}"
    if code == 0 and case.same_output and comparable(output) != comparable(expected):
        return "another output"
    if code != 0 and not errors and not output:
        return f"exit {code} without a word"
    return ""


def inject_all(case, count, jobs):
    rows = collections.OrderedDict()
    problems = []
    expected = subprocess.run(case.command, env={**os.environ, **case.environment},
                              stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        chosen = dict(zip(case.calls, pool.map(lambda call: calls_to_refuse(case, call, count),
                                               case.calls)))
        runs = [(call, mode, k) for call, numbers in chosen.items() for mode in MODES
                for k in numbers]
        results = pool.map(lambda run: traced(case, run[0], run[1], run[2]), runs)
        for (call, mode, k), result in zip(runs, results):
            row = rows.setdefault(call, [0, 0, 0])
            row[0] += 1
            injected = [line for line in result[3] if "(INJECTED)" in line]
            row[1] += bool(injected)
            problem = verdict(case, mode, expected, result) if injected else ""
            if call in OF_THE_PROGRAM and "signal" not in problem and result[0] is not None:
                problem = ""
            if problem:
                row[2] += 1
                lines = result[2].strip().splitlines()
                problems.append(f"{case.name}: {call} {mode} from {k}: {problem}\n    "
                                f"{injected[0][:150]}\n    {' | '.join(lines[-2:])[:300]}")
    return rows, problems


def record(arguments, folder):
    """Returns a recording for `inspect`."""
    name = os.path.join(folder, "recorded.tpt")
    environment = preloaded(arguments.interposer, TENSORPOOL_TRACE=name)
    subprocess.run([arguments.program], env={**os.environ, **environment}, capture_output=True,
                   check=True)
    return name


def start_watched(arguments):
    """Starts a process with a pool, which ends with its standard input."""
    code = "import sys; print(1, flush=True); sys.stdin.read()"
    watched = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE,
                               env={**os.environ, **preloaded(arguments.interposer)})
    watched.stdout.readline()
    return watched


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("interposer")
    parser.add_argument("program")
    parser.add_argument("command", nargs="?")
    arguments = parser.parse_args()
    if arguments.list:
        print(*(case.name for case in cases(arguments, "", "")), sep="\n")
        return 0
    if not shutil.which("strace"):
        print("skipped: no strace here; install the Debian package strace")
        return 77
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False,
                      capture_output=True).returncode != 0:
        print("skipped: this system does not permit ptrace")
        return 77
    problems = []
    total = collections.Counter()
    print(f"{'program':24} {'call':18} {'tried':>6} {'took effect':>12} {'failures':>9}")
    with tempfile.TemporaryDirectory() as folder, start_watched(arguments) as watched:
        for case in cases(arguments, record(arguments, folder), str(watched.pid)):
            if arguments.only not in (None, case.name):
                continue
            rows, found = inject_all(case, 40 if arguments.long else 1, os.cpu_count() or 1)
            problems += found
            for call, (tried, effective, failures) in rows.items():
                print(f"{case.name:24} {call:18} {tried:6} {effective:12} {failures:9}", flush=True)
                total.update(tried=tried, effective=effective, failures=failures)
    print(f"{'all':24} {'':18} {total['tried']:6} {total['effective']:12} {total['failures']:9}")
    for problem in problems[:40]:
        print(problem)
    return 1 if problems or not total["effective"] else 0


sys.exit(main())
