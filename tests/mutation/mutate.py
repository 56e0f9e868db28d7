#!/usr/bin/env python3
"""Changes one line of the core at a time and checks that the fast tests notice; prints a table.

usage: mutate.py [--each N] [--seed N] [--only FOLDER[:N,N...]] [--quick] [--after LOG]

A mutant is a source or a header of lib/pages, lib/watch, lib/blocks, lib/kinds, lib/pool, lib/arena or lib/context with one
change. It is compiled, linked into the tests of its layer and those above, and killed by the first program that fails, stops
or does not end. This build inlines no function, so the functions of a changed header, which is linked first, replace all
others of their names. Mutants that do not compile or compile to the same machine code are replaced by
others. --each is the number of mutants of each folder that count. --quick runs
the first of their programs only. With --after, those that an earlier run
of the same sources killed or left out are not tried again. Builds in build/mutation.

Survivors are printed with their change, unless equivalent.txt lists it with a reason. Exits with 1 if
fewer than 90 % of the others are killed, or if more than 15 are called equivalent.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from operators import sites

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/mutation"
FOLDERS = ["pages", "watch", "blocks", "kinds", "pool", "arena", "context"]
OFF = "DEVICE MODELS PLANNING PERF TOOLS COMMAND EXAMPLES PYTHON TORCH INTERPOSE".split()
# The slow tests are left out. Those of ALONE cover all pools and threads of their process and need
# one each. SLOWER is for mutants of lib/kinds and lib/pool only: it also has the programs that pool_tests runs.
ALONE = "PoolList.*:TrimAllPools.*:FinerSizes*:GlobalPool.*"
SLOWER = "GlobalPool*:SharedSegment*:ProfileOfAProgram*:*/full"
SLOW = ("ManyPools.*:EnvironmentGarbage*:LockedOperations*:*DefaultCosts*:*PoolLifetimes*:*PoolFork*:*Resident*:"
        "SharedSegmentFork*:BackgroundTrimmer.*")
POOL = ("pool", f"-{ALONE}:{SLOWER}:{SLOW}")
MODELS = ("models", "PoolModel.HoldsForLong*:PoolModel.HoldsForTheFuzzersCorpus")
KINDS = ("kinds", "*")
POOL_STEPS = [POOL, KINDS, ("pool", f"{SLOWER}-{ALONE}:{SLOW}"), ("misuse", "*"), ("alone", ALONE), MODELS]
# The first step of each is short, and the only one with --quick.
STEPS = {"pages": [("pages", "-LargeBlocksInUse*:*NthFailure*:*RefusedRequests*:*FourShards*"),
                   ("pages", "LargeBlocksInUse*:*NthFailure*:*RefusedRequests*:*FourShards*"), POOL, KINDS, MODELS],
         "blocks": [("blocks", "-Fork*:*ConcurrentFrees*:*StoppedInside*"),
                    ("blocks", "Fork*:*ConcurrentFrees*:*StoppedInside*"), POOL, KINDS, ("misuse", "*"), MODELS],
         "watch": [("watch", "*"), POOL, ("misuse", "*")], "kinds": [KINDS] + [step for step in POOL_STEPS if step != KINDS], "pool": POOL_STEPS,
         "arena": [("arena", "-*Fork.*:ArenaAddresses.TenThousand*:Steps/FullArena*:ArenaMeasuring*"),
                   ("arena", "ArenaFork.C*:Steps/FullArena*:ArenaMeasuring*")],
         "context": [("context", "*")]}
TARGETS = ["pages_tests", "watch_tests", "blocks_tests", "kinds_tests", "arena_tests", "context_tests", "pool_tests", "misuse_tests",
           "models_tests"]
# pool_tests runs these.
PROGRAMS = ["pool/global_pool_program", "pool/profile_program", "pool/segment_program", "pool/statics_program",
            "pool/tensorpool_for_plugin"]

NOT_COUNTED = ["does not compile", "same code"]
Mutant = collections.namedtuple("Mutant", "folder number file line change before after content")


def build():
    """Builds the tests as they are, and those programs again that an earlier run linked with a mutant."""
    for program in PROGRAMS:
        (BUILD / "tests" / program).unlink(missing_ok=True)
    for library in (BUILD / "tests/pool").glob("libtensorpool_for_plugin*"):
        library.unlink()
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG -fno-inline"]
                   + ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld"] * bool(shutil.which("ld.lld"))
                   + [f"-DTENSORPOOL_BUILD_{part}=OFF" for part in OFF],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "-j2", "--target"] + TARGETS, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    return {entry["file"]: (entry["directory"], shlex.split(entry["command"])) for entry in commands}


def candidates(folder, seed):
    """Yields mutants of the folder without end of its files: one of each file, then the next."""
    choice = random.Random(f"{seed}:{folder}")
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "lib" / folder).rglob("*.[ch]pp"))
    choice.shuffle(files)
    left = {file: sites((ROOT / file).read_text(), choice) for file in files}
    number = 0
    while any(left.values()):
        for file in files:
            if left[file]:
                number += 1
                yield Mutant(folder, number, file, *left[file].pop())


def compile_header(mutant, commands, place):
    """Returns the object with the functions of a changed header, or the result; and None: it replaces no object."""
    name = pathlib.Path(mutant.file).relative_to("lib")
    changed = place / "lib" / name
    changed.parent.mkdir(parents=True)
    changed.write_text(mutant.content)
    source = place / "header.cpp"
    source.write_text(f'#include "{name}"\n')
    user = next(file for file in sorted(commands) if file.startswith(str(ROOT / "lib" / mutant.folder)))
    directory, command = commands[user]
    objects = []
    for folder in (changed.parents[len(name.parts) - 1], ROOT / "lib"):
        objects.append(place / f"header_{len(objects)}.o")
        options = [f"-I{folder}", "-w", "-fkeep-inline-functions", "-o", str(objects[-1]), "-c", str(source)]
        if subprocess.run([command[0]] + options[:1] + command[1:command.index("-o")] + options[1:], cwd=directory,
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            return "does not compile", None
    return "same code" if objects[0].read_bytes() == objects[1].read_bytes() else objects[0], None


def compile_mutant(mutant, commands, place, earlier):
    """Returns the mutant, its object or result, and the original object."""
    known = earlier.get(f"{mutant.folder}:{mutant.number}", "survived")
    if known not in ("survived", "equivalent"):
        return mutant, known, None
    source = place / str(mutant.number) / pathlib.Path(mutant.file).name
    source.parent.mkdir(exist_ok=True)
    if mutant.file.endswith(".hpp"):
        return mutant, *compile_header(mutant, commands, source.parent)
    source.write_text(mutant.content)
    directory, command = commands[str(ROOT / mutant.file)]
    original = pathlib.Path(directory) / command[command.index("-o") + 1]
    made = source.with_suffix(".o")
    command = command[:command.index("-o")] + ["-w", "-o", str(made), "-c", str(source)]
    if subprocess.run(command, cwd=directory, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return mutant, "does not compile", original
    return mutant, "same code" if made.read_bytes() == original.read_bytes() else made, original


def link(name, mutated, original, output=None):
    """Links the program of this name with the mutated object in place of the original."""
    folder = BUILD / "tests" / pathlib.Path(name).parent
    script = folder / "CMakeFiles" / f"{pathlib.Path(name).name}.dir/link.txt"
    words = shlex.split(script.read_text().splitlines()[0])
    named = [os.path.normpath(folder / word) == str(original) for word in words]
    words = [str(mutated) if same else word for word, same in zip(words, named)]
    if output:
        words[words.index("-o") + 1] = str(output)
    if not any(named):
        words.insert(1, str(mutated))  # before the library, whose own object is then not needed
    subprocess.run(words, cwd=folder, check=True, stderr=subprocess.DEVNULL)


def path_of(program):
    return BUILD / "tests" / ("models" if program == "models" else "") / f"{program}_tests"


def restrain():
    """In the child: a mutant dumps no core, and is the first to go if memory runs out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")


def run(path, names, seconds):
    """Runs tests of the program; returns how it killed the mutant and with which test, or None."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([path, "--gtest_fail_fast", f"--gtest_filter={names}"],
                                   cwd=BUILD / "tests", stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=restrain)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = "time-out"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also its children, if any are left
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        lines = output.read().decode(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith("[  FAILED  ] ")]
    begun = [line for line in lines if line.startswith("[ RUN ")]
    last = (failed[:1] or begun[-1:] or ["[ RUN      ] *"])[0][13:].split(",")[0].split(" (")[0]
    return None if status == 0 else ("time-out" if status == "time-out" else "killed", f"{path.name}: {last}")


def run_twice(path, names, seconds):
    """Like run, but a failure must repeat, in its test alone or in all: a busy machine may be to blame."""
    found = run(path, names, seconds)
    if not found or found[0] == "time-out":
        return found
    return run(path, found[1].partition(": ")[2], seconds) or run(path, names, seconds)


def steps_of(folder):
    """Yields (program, filter) for each step, and for each test that must be alone."""
    for program, names in STEPS[folder]:
        if program != "alone":
            yield program, names
            continue
        suite = ""
        for line in subprocess.run([path_of("pool"), "--gtest_list_tests", f"--gtest_filter={names}"],
                                   capture_output=True, text=True, check=True).stdout.splitlines():
            name = line.split("#")[0].strip()
            if line.startswith(" "):
                yield "pool", suite + name
            else:
                suite = name


def judge(folder, mutated, original, limits):
    """Returns the result for a mutant that counts, and the test that noticed it."""
    linked = {}
    for program, names in steps_of(folder):
        if program not in linked:
            for name in PROGRAMS if folder == "pool" and program == "pool" else []:
                link(name, mutated, original)
            linked[program] = mutated.with_name(f"{program}_tests")
            link(path_of(program).relative_to(BUILD / "tests"), mutated, original, linked[program])
        found = run_twice(linked[program], names, limits[program, names])
        if found:
            break
    for path in linked.values():
        path.unlink()
    return found or ("survived", "")


def measure(folders):
    """Runs the tests without a mutant; returns the seconds that each step may take with one."""
    limits = {}
    for program, names in [step for folder in folders for step in steps_of(folder)]:
        if (program, names) not in limits:
            begin = time.monotonic()
            found = run_twice(path_of(program), names, 600)
            if found:
                sys.exit(f"the tests fail without a mutant: {found[1]}")
            limits[program, names] = 20 + 2 * (time.monotonic() - begin)
    return limits


def equivalents():
    """Returns {(file, the changed line): reason}."""
    known = {}
    for entry in (pathlib.Path(__file__).parent / "equivalent.txt").read_text().split("\n\n"):
        lines = [line for line in entry.splitlines() if line and not line.startswith("#")]
        if lines:
            known[lines[0], lines[1].strip()] = " ".join(lines[2:])
    return known


def results_of(log):
    """Returns {folder:number: result} of an earlier run."""
    found = re.findall(r"^(\w+:\d+) ([\w -]+): lib/", pathlib.Path(log).read_text() if log else "", re.M)
    return dict(found)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("--each", type=int, default=38)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--after")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        for folder in FOLDERS:
            del STEPS[folder][1:]
    only = {part.partition(":")[0]: part.partition(":")[2] for part in arguments.only}
    commands, known, results = build(), equivalents(), collections.Counter()
    folders = [folder for folder in FOLDERS if not only or folder in only]
    limits, earlier = measure(folders), results_of(arguments.after)
    print("the tests pass without a mutant", flush=True)
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(1) as ahead:
        for folder in folders:
            numbers = [int(number) for number in only.get(folder, "").split(",") if number]
            queue = (mutant for mutant in candidates(folder, arguments.seed)
                     if not numbers or mutant.number in numbers)
            compiled = collections.deque()
            counted = 0
            while counted < arguments.each:
                while len(compiled) < 2 and (mutant := next(queue, None)):
                    compiled.append(ahead.submit(compile_mutant, mutant, commands, pathlib.Path(place), earlier))
                if not compiled:
                    break
                mutant, made, original = compiled.popleft().result()
                result, by = (made, "") if isinstance(made, str) else judge(folder, made, original, limits)
                if result == "survived" and (mutant.file, mutant.after.strip()) in known:
                    result = "equivalent"
                counted += result not in NOT_COUNTED
                results[folder, result] += 1
                print(f"{folder}:{mutant.number} {result}: {mutant.file}:{mutant.line} {mutant.change} {by}\n"
                      f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}", flush=True)
    sys.exit(report(results))


def report(results):
    """Prints the table; returns the exit code."""
    columns = ["killed", "time-out", "survived", "equivalent", "does not compile", "same code"]
    print("| folder | mutants | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 2) + "|")
    total = collections.Counter()
    for folder in FOLDERS:
        row = collections.Counter({column: results[folder, column] for column in columns})
        total += row
        print(f"| {folder} | {sum(row[column] for column in columns[:4])} | "
              + " | ".join(str(row[column]) for column in columns) + " |")
    killed = total["killed"] + total["time-out"]
    others = killed + total["survived"]
    print(f"{killed} of {others} that are not equivalent are killed: {100 * killed / max(others, 1):.1f} %")
    return int(killed < 0.9 * others or total["equivalent"] > 15)


if __name__ == "__main__":
    main()
