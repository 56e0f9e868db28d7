#!/usr/bin/env python3
"""Checks that `tensorpool serve` answers others beside a slow client (a byte a second), idle
connections, and two requests without end.

usage: serve_clients.py [--long] COMMAND

The short form has 100 idle connections and checks that each request is answered while they stay
open. --long has 1,000, and each answer must come within a second.
"""
import json
import resource
import socket
import subprocess
import sys
import threading
import time

REQUESTS = 20


def connect(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.settimeout(60)
    return client


def answer(port, target):
    """Returns the whole answer to a request."""
    with connect(port) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                       "Connection: close\r\n\r\n".encode())
        parts = []
        while part := client.recv(65536):
            parts.append(part)
        return b"".join(parts)


def keep_sending(port, first, rest, pause, ended):
    """Sends `rest` again and again until the server has closed the connection."""
    with connect(port) as client:
        try:
            client.sendall(first)
            while not ended.is_set():
                client.sendall(rest)
                ended.wait(pause)
        except OSError:
            pass


def main():
    is_long = "--long" in sys.argv
    count = 1000 if is_long else 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * count + 100 and hard != resource.RLIM_INFINITY and hard < 2 * count + 100:
        print(f"skipped: only {hard} descriptors are permitted here")
        return 77
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count + 100), hard))
    server = subprocess.Popen([sys.argv[-1], "serve", "--listen", "127.0.0.1:0", "--json"],
                              stdout=subprocess.PIPE)
    port = json.loads(server.stdout.readline())["port"]
    ended = threading.Event()
    head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    hostile = [(head, b"X", 1), (head, b"X-More: more\r\n", 0),
               (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999999\r\n\r\n",
                b"x" * 1000, 0)]
    threads = [threading.Thread(target=keep_sending, args=(port, *one, ended)) for one in hostile]
    idle = []
    problems = []
    slowest = 0
    try:
        idle = [connect(port) for _ in range(count)]
        for thread in threads:
            thread.start()
        for _ in range(REQUESTS):
            begin = time.monotonic()
            got = answer(port, "/metrics")
            slowest = max(slowest, time.monotonic() - begin)
            if not got.startswith(b"HTTP/1.1 200"):
                problems.append(f"unexpected answer: {got[:60]}")
        if is_long and slowest > 1:
            problems.append(f"an answer took {slowest:.2f} s")
        if server.poll() is not None:
            problems.append(f"the server ended with {server.returncode}")
    except OSError as error:
        problems.append(f"no answer: {error}")
    finally:
        ended.set()
        for client in idle:
            client.close()
        for thread in threads:
            if thread.ident:
                thread.join()
        server.terminate()
        server.wait()
    print(f"{count} idle connections, {REQUESTS} requests, the slowest took {slowest:.3f} s")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


sys.exit(main())
