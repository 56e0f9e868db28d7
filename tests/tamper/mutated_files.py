#!/usr/bin/env python3
"""Gives the command `tensorpool` changed, truncated and squatted files, and prints a table.

usage: mutated_files.py [--runs N] COMMAND FUZZ [INTERPOSER PROGRAM]

FUZZ is the folder tests/fuzz, whose corpora are changed; with INTERPOSER and PROGRAM, also a recording
and a segment of this program. Each run must end without a signal within a second of processor time
and take at most 64 MB.
"""
import argparse
import collections
import os
import random
import resource
import subprocess
import sys
import tempfile

PAGE = 4096
MAX_BYTES = 64 << 20  # the kernel includes this script before it becomes the command
MAX_SECONDS = 1.0
TIME_OUT = 60


def mutate(content, source):
    """Returns the content with a few changes."""
    data = bytearray(content)
    for _ in range(source.choice([1, 1, 2, 8])):
        if not data:
            break
        at = source.randrange(len(data))
        kind = source.randrange(6)
        if kind == 0:
            data[at] ^= 1 << source.randrange(8)
        elif kind == 1:
            data[at:at + 8] = source.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]).to_bytes(
                8, "little")
        elif kind == 2:
            data[at:at + 1] = bytes([source.randrange(256)])
        elif kind == 3:
            del data[source.choice([at, at // PAGE * PAGE]):]
        elif kind == 4:
            data[at:at] = data[at // 2:at // 2 + source.randrange(64)]
        else:
            del data[at:at + source.randrange(64)]
    return bytes(data)


def run(command, environment=None):
    """Returns (status, seconds of processor time, bytes of memory, its last errors)."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (TIME_OUT, TIME_OUT))
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=errors, env=environment, preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return (process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,
                errors.read().decode(errors="replace")[-200:])


class Inputs:
    """One kind of file: what is changed, and the command that reads it."""

    def __init__(self, name, contents, command, environment=None, file=None, size=0):
        self.name, self.contents, self.command = name, contents, command
        self.environment, self.file, self.size = environment, file, size

    def write(self, path, content):
        """Writes the content, and zeros up to the size unless the content was cut."""
        with open(path, "r+b" if self.file else "wb") as file:
            file.write(content)
            file.truncate()
            if self.size and len(content) == len(self.contents[0]):
                file.truncate(self.size)


def in_folder(folder):
    return [open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))]


PLANS = [b"id,lower,upper,size\nx,0,5,100\nboth,0,9,200\ny,5,9,100\n",
         b"id,lower,upper,size,offset\nx,0,5,100,0\nboth,0,9,200,100\ny,5,9,100,0\n",
         b'{"buffers": [{"id": "x", "lower": 0, "upper": 5, "size": 100}]}']


def all_inputs(arguments, folder):
    path = os.path.join(folder, "input")
    tool = arguments.command
    traces = []  # the corpus of traces is not of files, but of directions for a writer
    models = in_folder(os.path.join(arguments.fuzz, "model_corpus"))
    made = []
    watched = None
    if arguments.interposer:
        name = os.path.join(folder, "recorded.tpt")
        statistics = os.path.join(folder, "statistics")
        os.mkdir(statistics)
        environment = {**os.environ, "LD_PRELOAD": arguments.interposer,
                       "TENSORPOOL_INTERPOSE_MIN": "1", "TENSORPOOL_STATISTICS_DIR": statistics}
        subprocess.run([arguments.program], env={**environment, "TENSORPOOL_TRACE": name},
                       check=True, stdout=subprocess.DEVNULL)
        watched = subprocess.Popen(["/usr/bin/python3", "-c", "print(1, flush=True); input()"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        watched.stdout.readline()
        segment = os.path.join(statistics, str(watched.pid))
        size = os.path.getsize(segment)
        content = open(segment, "rb").read(256 << 10)  # what is used; the rest is zeros
        # The process lives on, idle: it holds the lock that shows readers a segment in use.
        watching = {**os.environ, "TENSORPOOL_STATISTICS_DIR": statistics}
        shown = subprocess.run([tool, "ls", "--json"], env=watching, capture_output=True, check=True)
        assert str(watched.pid).encode() in shown.stdout, "the segment is not read"
        traces.append(open(name, "rb").read()[:200_000])
        made.append(Inputs("segment", [content], [tool, "top", "--json", "-n", "1"], watching,
                           segment, size))
    made += [*([Inputs("trace", traces, [tool, "inspect", path])] if traces else []),
             Inputs("model", models, [tool, "inspect", path]),
             Inputs("plan", PLANS, [tool, "plan", "--budget", "10ms", path])]
    return made, watched


def squat(inputs, folder):
    """Puts what is no plain file at the name of the input; yields names."""
    path = inputs.file or inputs.command[-1]
    def put(make):
        if os.path.lexists(path):
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        make()
    def unreadable():
        open(path, "wb").write(inputs.contents[0])
        os.chmod(path, 0)
    for name, make in [("pipe", lambda: os.mkfifo(path)), ("folder", lambda: os.mkdir(path)),
                       ("link to /dev/zero", lambda: os.symlink("/dev/zero", path)),
                       ("link to itself", lambda: os.symlink(path, path)),
                       ("dangling link", lambda: os.symlink(folder + "/nowhere", path)),
                       ("mode 0", unreadable)]:
        put(make)
        yield name
    put(lambda: open(path, "wb").close())
    yield "empty"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("command")
    parser.add_argument("fuzz")
    parser.add_argument("interposer", nargs="?")
    parser.add_argument("program", nargs="?")
    arguments = parser.parse_args()
    problems = []
    print(f"{'file':10} {'runs':>7} {'accepted':>9} {'failures':>9} {'max s':>7} {'max MB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        kinds, watched = all_inputs(arguments, folder)
        for inputs in kinds:
            path = inputs.file or inputs.command[-1]
            source = random.Random(1)
            total = collections.Counter()
            most_seconds = most_bytes = 0

            def judge(what):
                nonlocal most_seconds, most_bytes
                code, seconds, used, errors = run(inputs.command, inputs.environment)
                total.update(runs=1, accepted=code == 0)
                most_seconds, most_bytes = max(most_seconds, seconds), max(most_bytes, used)
                if code < 0 or seconds > MAX_SECONDS or used > MAX_BYTES:
                    total.update(failures=1)
                    problems.append(f"{inputs.name}, {what}: exit {code}, {seconds:.2f} s, "
                                    f"{used >> 20} MB: {errors}")

            for i in range(arguments.runs):
                inputs.write(path, mutate(source.choice(inputs.contents), source))
                judge(f"change {i}")
            for what in squat(inputs, folder):
                judge(what)
            os.remove(path)
            print(f"{inputs.name:10} {total['runs']:7} {total['accepted']:9} {total['failures']:9} "
                  f"{most_seconds:7.2f} {most_bytes / 1e6:7.1f}", flush=True)
        if watched:
            watched.kill()
    for problem in problems[:30]:
        print(problem)
    return 1 if problems else 0


sys.exit(main())
