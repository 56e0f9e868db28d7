"""Starts a redis-server on a socket in a temporary folder and runs redis-benchmark against it."""

import subprocess
import time

from . import measure

REQUESTS = 300_000
TESTS = ("set", "get")
PATIENCE_SECONDS = 20


def send_command(socket, *command):
    done = subprocess.run(["redis-cli", "-s", socket, *command], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def start(environment, folder, socket):
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_SECONDS
    while "PONG" not in send_command(socket, "ping"):
        if server.poll() is not None or time.monotonic() > end:
            server.kill()
            server.wait()
            raise measure.Failed("redis-server does not answer")
        time.sleep(0.05)
    return server


def cpu_of(socket):
    """Returns the CPU seconds of the server so far: user and system, all threads."""
    lines = send_command(socket, "info", "cpu").split()
    used = dict(line.split(":") for line in lines if ":" in line)
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def seconds(environment, expected, folder):
    """Returns the server's CPU seconds for a million requests with small values, from 20 clients that
    each have 16 requests under way."""
    socket = f"{folder}/redis"
    server = start(environment, folder, socket)
    try:
        files = measure.mapped_files(server.pid)
        for part in expected:
            if not any(part in name for name in files):
                raise measure.Failed(f"redis-server: {part} is not loaded")
        before = cpu_of(socket)
        subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", str(REQUESTS), "-c", "20",
                        "-P", "16", "-r", "100000", "-d", "100", "-t", ",".join(TESTS)],
                       stdout=subprocess.DEVNULL, check=True)
        return (cpu_of(socket) - before) / (REQUESTS * len(TESTS)) * 1e6
    finally:
        send_command(socket, "shutdown", "nosave")
        server.wait()
