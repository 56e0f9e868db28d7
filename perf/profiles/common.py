"""What the scripts of this folder share: they run programs under the command `tensorpool`, and read
its heap profiles."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "perf" / "workloads"))

from runner import allocators, measure  # noqa: E402

HOW_TO_BUILD = "cmake --preset shared && cmake --build --preset shared"
MIB = 2**20


def add_build(parser):
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build" / "shared",
                        help="build folder (default: build/shared)")


def environment_of(interpose_min="64KiB", profile=None):
    """Returns the variables of a run; those that would change the pool or the threads are removed."""
    variables = allocators.clean_environment() | {"TENSORPOOL_INTERPOSE_MIN": interpose_min}
    return variables | ({"TENSORPOOL_PROFILE": profile} if profile else {})


def run(command, environment):
    """Runs a command and returns what it printed. Raises Failed if it ends with an error."""
    try:
        ended = subprocess.run([str(word) for word in command], env=environment, text=True,
                               errors="replace", stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError as error:
        raise measure.Failed(f"{command[0]} is missing; install its Debian package") from error
    if ended.returncode != 0:
        raise measure.Failed(f"{command[0]} ended with {ended.returncode}: "
                             f"{ended.stderr.strip()[-600:]}")
    return ended.stdout


def tensorpool(build, environment, *arguments):
    command = build.resolve() / "tools" / "tensorpool" / "tensorpool"
    if not command.is_file():
        raise measure.Failed(f"{command} is missing; build it: {HOW_TO_BUILD}")
    return run([command, *arguments], environment)


def profile_of(program, build, environment):
    """Runs the program under `tensorpool profile`. Returns what --json writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.json"
        tensorpool(build, environment, "profile", "--json", "-o", file, "--", *program)
        return json.loads(file.read_text())


def line_of(profile, site):
    """Returns the frame that the table shows: the innermost that belongs to no library or allocator,
    and in a program in Python the innermost line of Python of that kind."""
    frames = [profile["frames"][number] for number in reversed(site["stack"])]
    frames = [frame for frame in frames if not frame["module"]] or frames
    own = [frame for frame in frames if not frame["internal"]]
    return (own or frames or [{"name": "[other stacks]", "file": ""}])[0]


def main_of(main, name):
    """Calls `main`. Returns the exit status."""
    try:
        return main()
    except measure.Failed as failure:
        return f"{name}: {failure}"
    except KeyboardInterrupt:
        return f"\n{name}: stopped"
