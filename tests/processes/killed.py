"""Kills processes while the reader library and `tensorpool` read them."""
import glob
import os
import subprocess
import tempfile

from kinds import Row, SECONDS

# The exit codes of a command whose process ends: 0 and 1, and 3 of `stat`.
EXPECTED = {0, 1, 3}


def readers_of(programs, process):
    """Yields the commands that read the process until it ends."""
    yield "reader library", [programs.lives, "pool", "read", process]
    if os.path.exists(programs.command):
        yield "stat", [programs.command, "stat", "-p", process, "-i", "0.01"]
        yield "top", [programs.command, "top", "-p", process, "-i", "0.01", "--json"]
        yield "trim", [programs.command, "trim", "-p", process, "--for", "60s"]


def end_of(reader, name):
    """Returns what is wrong with how a reader ended, or an empty text, and whether it had read."""
    try:
        output, errors = reader.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        reader.kill()
        reader.communicate()
        return f"{name}: no end within {SECONDS} s", False
    if reader.returncode in EXPECTED:
        return "", bool(output) and not output.startswith("0 ")
    return f"{name}: exit {reader.returncode}: {(errors or output)[-300:]}", False


def kill_one(programs, variables, number):
    """Starts a process and a reader, kills the process, and returns the reader's name, its problem and
    whether it had read by then."""
    with subprocess.Popen([programs.lives, "pool", "watched"], env=variables,
                          stdout=subprocess.PIPE) as watched:
        watched.stdout.readline()
        commands = list(readers_of(programs, str(watched.pid)))
        name, command = commands[number % len(commands)]
        reader = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # Commands begin to read after some 100,000 of these steps.
        for _ in range(number * 79190 % 600000):
            os.getppid()
        watched.kill()
        return name, *end_of(reader, name)


def files_left(programs, folder, variables):
    """Returns how many files of ended processes are left once `ls` has removed them, and the rest."""
    before = len(glob.glob(os.path.join(folder, "*")))
    subprocess.run([programs.command, "ls"], env=variables, check=True, capture_output=True)
    return before, len(glob.glob(os.path.join(folder, "*")))


def kills(programs, is_long):
    for how in ("segments in memory", "segments in a folder"):
        counts, problems, readers = {}, [], 0
        with tempfile.TemporaryDirectory() as folder:
            variables = {**os.environ, "TENSORPOOL_CHECKS": "off"}
            if "folder" in how:
                variables["TENSORPOOL_STATISTICS_DIR"] = folder
            total = (500 if is_long else 24) // 2
            for number in range(total):
                name, problem, has_read = kill_one(programs, variables, number)
                counts[name] = counts.get(name, 0) + 1
                problems += [problem] if problem else []
                readers += has_read
            result = ", ".join(f"{count} {name}" for name, count in counts.items())
            result += f"; {readers} had printed statistics before"
            if "folder" in how and os.path.exists(programs.command):
                before, after = files_left(programs, folder, variables)
                result += f"; {before} stale files, {after} after `ls`"
                problems += [f"{after} files are left"] if after else []
                problems += [] if before else ["no process left a file"]
        yield Row(how, total, len(problems), result, problems)
