"""A redis-server of our own, behind a socket in a folder of ours, and redis-benchmark against it."""

import subprocess
import time

from . import measure

REQUESTS = 300_000
TESTS = ("set", "get")
PATIENCE_SECONDS = 20


def ask(socket, *words):
    done = subprocess.run(["redis-cli", "-s", socket, *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def start(environment, folder, socket):
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_SECONDS
    while "PONG" not in ask(socket, "ping"):
        if server.poll() is not None or time.monotonic() > end:
            server.kill()
            server.wait()
            raise measure.Failed("redis-server does not answer")
        time.sleep(0.05)
    return server


def cpu_of(socket):
    """Seconds that the server took so far, user and system, all threads."""
    lines = ask(socket, "info", "cpu").split()
    used = dict(line.split(":") for line in lines if ":" in line)
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def seconds(environment, expected, folder):
    """The server's a million requests: small values, 20 clients, 16 requests at once from each."""
    socket = f"{folder}/redis"
    server = start(environment, folder, socket)
    try:
        files = measure.mapped_files(server.pid)
        for part in expected:
            if not any(part in name for name in files):
                raise measure.Failed(f"redis-server: {part} is not loaded: not measured")
        before = cpu_of(socket)
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", str(REQUESTS), "-c", "20",
                        "-P", "16", "-r", "100000", "-d", "100", "-t", ",".join(TESTS)],
                       stdout=subprocess.DEVNULL, check=True)
        return (cpu_of(socket) - before) / (REQUESTS * len(TESTS)) * 1e6
    finally:
        ask(socket, "shutdown", "nosave")
        server.wait()
