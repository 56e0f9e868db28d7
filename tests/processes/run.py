#!/usr/bin/env python3
"""Runs programs whose processes fork, end, are killed or unload plugins, and prints a table.

usage: run.py [--long] [--only KIND] BUILD_FOLDER

Programs are taken from BUILD_FOLDER. Each kind runs with the pool linked, and also under the
interposer if the folder has one. The short form repeats each a few times; --long repeats it as often
as issue 20 requires. A run fails if it ends by a signal, with another exit code than 0, or not
within its time.
"""
import argparse
import os
import sys

import killed
import kinds


KINDS = {**kinds.KINDS, "kill": killed.kills}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", choices=sorted(KINDS))
    parser.add_argument("folder")
    arguments = parser.parse_args()
    programs = kinds.Programs(os.path.abspath(arguments.folder))
    failures = 0
    print(f"{'kind':14} {'how':34} {'runs':>6} {'failures':>9}  result")
    for kind, function in KINDS.items():
        if arguments.only not in (None, kind):
            continue
        for row in function(programs, arguments.long):
            print(f"{kind:14} {row.how:34} {row.runs:6} {row.failures:9}  {row.result}", flush=True)
            failures += row.failures
            for problem in filter(None, row.problems[:5]):
                print(f"    {problem}")
    return 1 if failures else 0


sys.exit(main())
