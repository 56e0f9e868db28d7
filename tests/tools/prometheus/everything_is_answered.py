"""A real Prometheus scrapes `tensorpool serve` while processes work and fail.

Every expression and every variable of the dashboard and every recording rule must yield a sample,
alerts must fire with complete texts, and an ended process must be absent from the next scrape."""
import os
import secrets
import signal
import sys
import tempfile

import dashboard
from server import Prometheus, fetch, free_address
from testing import Program, check, need, read, wait_for

WORKING = os.path.basename(sys.argv[2])[:15]  # the kernel cuts the names of processes
VALUES = {"__rate_interval": "1m", "__range": "5m", "instance": ".*", "process": WORKING,
          "pid": ".*", "pool": ".*"}


def check_the_dashboard(prometheus):
    for position, expression in dashboard.expressions():
        query = dashboard.fill_in(expression, VALUES)
        wait_for(f"a sample for {position}: {query}", lambda query=query: prometheus.samples(query))
    print(f"{len(dashboard.expressions())} expressions of the dashboard have samples")


def check_the_variables(prometheus):
    for name, query in dashboard.variables():
        series, label = dashboard.fill_in(query, VALUES)[len("label_values("):-1].rsplit(", ", 1)
        found = prometheus.query(f"label/{label}/values", **{"match[]": series})
        check(found, f"the variable {name} has no values: {query}")


def check_the_rules(prometheus):
    records = [rule["name"] for rule in prometheus.rules() if rule["type"] == "recording"]
    for record in records:
        wait_for(f"a sample for {record}", lambda record=record: prometheus.samples(record))
    print(f"{len(records)} recording rules have samples")


def check_the_alerts(prometheus):
    """The processes reach limits continuously, so these two alerts fire at once."""
    def firing():
        return {alert["labels"]["alertname"]: alert for alert in prometheus.query("alerts")["alerts"]
                if alert["state"] == "firing" and alert["labels"].get("process") == WORKING}
    for name in ("TensorpoolAllocationsFail", "TensorpoolArenaAllocationsFail"):
        wait_for(f"{name} fires", lambda name=name: name in firing())
    for alert in firing().values():
        for text in alert["annotations"].values():
            check("<" not in text and "%!" not in text, f"incomplete text: {text}")
    for rule in prometheus.rules():
        check(rule["health"] == "ok", f"{rule['name']}: {rule.get('lastError')}")
    print(f"firing: {', '.join(sorted(firing()))}")


class Serving(Program):
    """`tensorpool serve`, with a token."""

    def __init__(self, tensorpool, folder):
        self.address = free_address()
        self.token = secrets.token_hex(16)
        self.token_file = os.path.join(folder, "token")
        self.log = os.path.join(folder, "serve.log")
        with open(os.open(self.token_file, os.O_CREAT | os.O_WRONLY, 0o600), "w",
                  encoding="utf-8") as file:
            file.write(self.token + "\n")
        with open(self.log, "w", encoding="utf-8") as log:
            super().__init__(tensorpool, "serve", "--listen", self.address, "--token-file",
                             self.token_file, log=log)

    def shows(self, process):
        check(self.runs(), f"tensorpool serve has ended:\n{read(self.log)}")
        metrics = fetch(f"http://{self.address}/metrics", self.token)
        return metrics and f'pid="{process.pid}"' in metrics

    def is_open_to_all(self):
        return fetch(f"http://{self.address}/metrics") is not None


def end_one(prometheus, serving, doomed):
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.process.wait()
    check(not serving.shows(doomed), "an ended process is still scraped")
    gone = f'tensorpool_build_info{{pid="{doomed.pid}"}}'
    wait_for("the process is gone from Prometheus", lambda: not prometheus.samples(gone))


def main(tensorpool, subject):
    with tempfile.TemporaryDirectory() as folder, \
            Program(subject) as working, Program(subject) as doomed, \
            Serving(tensorpool, folder) as serving:
        for process in (working, doomed):
            process.wait_until_ready()
            wait_for(f"tensorpool serve shows {process.pid}",
                     lambda process=process: serving.shows(process))
        check(not serving.is_open_to_all(), "metrics are served without the token")
        with Prometheus(folder, serving.address, serving.token_file) as prometheus:
            prometheus.wait_until_ready()
            check_the_dashboard(prometheus)
            check_the_variables(prometheus)
            check_the_rules(prometheus)
            check_the_alerts(prometheus)
            end_one(prometheus, serving, doomed)


need("prometheus")
main(sys.argv[1], sys.argv[2])
