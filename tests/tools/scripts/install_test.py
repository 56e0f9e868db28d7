"""How the scripts in tools install packages (tools/lib.sh): apt is a program of the test."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[3] / "tools"

PACKAGES = """\
# comment
needed-dev   build   needed_command
other-dev    build   other_command
npm          page    npm
"""

# Runs what the test wants apt-get to do, and counts its calls.
APT = """\
echo "$*" >>"$LOG"
for argument; do
    case $argument in
        update | install) break ;;
    esac
done
calls=$(grep -c " $argument" "$LOG")
"""


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        (self.root / "bin").mkdir()
        shutil.copy(TOOLS / "lib.sh", self.root / "tools")
        (self.root / "tools/packages.txt").write_text(PACKAGES)
        self.program("tools/setup", 'set -euo pipefail\nsource "${0%/*}/lib.sh"\ninstall "$@"\n')
        self.program("bin/sudo", 'exec "$@"\n')
        self.program("bin/apt-cache", 'echo "  Candidate: 1.0"\n')
        self.program("bin/sleep", 'echo "$*" >>"$SLEPT"\n')
        self.log = self.root / "apt_calls"
        self.slept = self.root / "slept"
        self.apt("")

    def program(self, name, text):
        path = self.root / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def apt(self, text):
        self.program("bin/apt-get", APT + text)

    def install(self, *purposes):
        environment = {
            **os.environ,
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "SLEPT": str(self.slept),
        }
        return subprocess.run([self.root / "tools/setup", *(purposes or ["build"])],
                              env=environment, capture_output=True, text=True, check=False)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def packages_log(self):
        return (self.root / "build/packages.log").read_text()

    def test_updates_the_lists_and_installs_what_is_missing(self):
        self.program("bin/other_command", "")
        self.apt('echo "$argument is done"\n')
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "tools/setup: installing needed-dev\n")
        update, install = self.calls()
        self.assertTrue(update.endswith(" update"), update)
        self.assertTrue(install.endswith(" install --no-install-recommends needed-dev"), install)
        self.assertIn("-o DPkg::Lock::Timeout=", install)
        self.assertEqual(self.packages_log(), "update is done\ninstall is done\n")

    def test_calls_no_apt_if_nothing_is_missing(self):
        for name in ("needed_command", "other_command"):
            self.program(f"bin/{name}", "")
        done = self.install()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.calls(), [])

    def test_takes_a_command_of_any_origin_for_its_package(self):
        self.program("bin/npm", "")
        self.assertEqual(self.install("page").stdout, "")
        self.assertEqual(self.calls(), [])

    def test_starts_apt_again_while_another_one_holds_the_lists(self):
        self.apt("""
if [[ $argument == update && $calls -lt 4 ]]; then
    echo "Reading package lists..."
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 12 (apt-get)" >&2
    echo "E: Unable to lock directory /var/lib/apt/lists/" >&2
    exit 100
fi
""")
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "tools/setup: installing needed-dev other-dev",
            "tools/setup: waiting for another apt: "
            "/var/lib/apt/lists/lock. It is held by process 12 (apt-get)",
        ])
        self.assertEqual(len(self.calls()), 5)
        self.assertEqual(len(self.slept.read_text().splitlines()), 3)

    def test_starts_apt_again_while_another_one_downloads(self):
        self.apt("""
if [[ $argument == install && $calls -lt 3 ]]; then
    echo "E: Could not get lock /var/cache/apt/archives/lock. It is held by process 12 (apt)" >&2
    exit 100
fi
""")
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.calls()), 4)

    def test_reports_once_that_apt_itself_waits(self):
        self.apt("""
wait="Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend."
[[ $argument != install ]] || for second in 1 2 3; do
    echo "$wait It is held by process 34 (dpkg)..."
done
""")
        done = self.install()
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("waiting"), 1, done.stdout)
        self.assertIn("/var/lib/dpkg/lock-frontend. It is held by process 34 (dpkg)", done.stdout)

    def test_stops_with_the_reason_if_a_lock_stays_held(self):
        self.apt("""
echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 12 (apt-get)" >&2
exit 100
""")
        done = self.install()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[1:], [
            "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 12 (apt-get)"])
        self.assertEqual(len(self.calls()), 240)

    def test_does_not_start_apt_again_after_it_has_waited_for_dpkg(self):
        self.apt("""
echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 34 (dpkg)" >&2
exit 100
""")
        self.assertEqual(self.install().returncode, 1)
        self.assertEqual(len(self.calls()), 2)
        self.assertFalse(self.slept.exists())

    def test_prints_the_reasons_of_apt_for_a_failure(self):
        self.apt("""
[[ $argument == install ]] || exit 0
echo "Reading package lists..."
echo "E: You don't have enough free space in /var/cache/apt/archives/." >&2
exit 100
""")
        done = self.install()
        self.assertEqual(done.returncode, 1)
        self.assertIn("tools/setup: apt-get could not install needed-dev other-dev", done.stderr)
        self.assertTrue(done.stderr.endswith(
            "\nE: You don't have enough free space in /var/cache/apt/archives/.\n"), done.stderr)
        self.assertNotIn("online", done.stderr)
        self.assertIn("Reading package lists...", self.packages_log())

    def test_prints_what_came_last_if_apt_gave_no_reason(self):
        self.apt('echo "sudo: a password is required" >&2\nexit 1\n')
        done = self.install()
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.endswith("\nsudo: a password is required\n"), done.stderr)

    def test_names_a_package_that_apt_does_not_know(self):
        self.program("bin/apt-cache", "echo '  Candidate: (none)'\n")
        self.apt('[[ $argument == update ]] || { echo "E: Unable to locate package x"; exit 100; }\n')
        done = self.install()
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt does not know the package needed-dev", done.stderr)
        self.assertTrue(done.stderr.endswith("\nE: Unable to locate package x\n"), done.stderr)

    def test_ignores_a_failed_update_if_the_packages_can_be_installed(self):
        self.apt('[[ $argument == install ]] || { echo "E: no network"; exit 100; }\n')
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(os.path.exists("/usr/bin/apt-get"), "no apt here")
    def test_recognizes_what_the_apt_of_this_machine_prints(self):
        state = self.root / "apt"
        for name in ("state/lists/partial", "cache/archives/partial", "sources"):
            (state / name).mkdir(parents=True)
        for name in ("state/status", "sources.list"):
            (state / name).touch()
        held = state / "state/lists/lock"
        holder = subprocess.Popen(
            [sys.executable, "-c",
             "import fcntl, sys\n"
             "lock = open(sys.argv[1], 'w')\n"
             "fcntl.lockf(lock, fcntl.LOCK_EX)\n"
             "print('held', flush=True)\n"
             "sys.stdin.read()\n", str(held)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        self.assertEqual(holder.stdout.readline(), "held\n")
        self.apt(f"""
[[ $argument == update ]] || exit 0
exec /usr/bin/apt-get -o Dir::State={state}/state -o Dir::State::status={state}/state/status \\
    -o Dir::Cache={state}/cache -o Dir::Etc::SourceList={state}/sources.list \\
    -o Dir::Etc::SourceParts={state}/sources "$@"
""")
        # The pause between two tries ends the other process.
        self.program("bin/sleep", f"""
kill {holder.pid}
exec {sys.executable} -c 'import fcntl; fcntl.lockf(open("{held}", "w"), fcntl.LOCK_EX)'
""")
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("waiting for another apt: ", done.stdout)
        self.assertIn(f"held by process {holder.pid} ", done.stdout)
        self.assertGreaterEqual(len(self.calls()), 3)


if __name__ == "__main__":
    unittest.main()
