"""Functions shared by the tests with Prometheus. Uses only the standard library."""
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DASHBOARD = os.path.normpath(os.path.join(HERE, "../../../tools/dashboard"))
RULES = os.path.join(DASHBOARD, "rules.yml")
ALERTS = os.path.join(DASHBOARD, "alerts.yml")
GRAFANA = os.path.join(DASHBOARD, "grafana-tensorpool.json")


def need(*commands):
    """Ends the test as skipped if one of the programs is missing."""
    missing = [command for command in commands if not shutil.which(command)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)} here; install the Debian package prometheus")
        sys.exit(77)


def check(holds, message):
    if not holds:
        sys.exit(f"FAILED: {message}")


def run(*command, text=None):
    """Returns the program's exact output; fails with it if the program fails."""
    done = subprocess.run(command, input=text.encode() if text else None, capture_output=True,
                          check=False)
    output = (done.stdout + done.stderr).decode()
    check(done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{output}")
    return output


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wait_for(what, condition, seconds=120):
    """Waits for a true value of `condition()` and returns it."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.2)


class Program:
    """A program that runs until the end of the `with`, or ends earlier."""

    def __init__(self, *command, log=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log or subprocess.PIPE,
                                        stderr=log, encoding="utf-8")
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def wait_until_ready(self):
        check(self.process.stdout.readline() == "ready\n", f"{self.process.args[0]} is not ready")
        return self

    def runs(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
