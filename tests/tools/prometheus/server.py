"""Runs a Prometheus on loopback, and queries it."""
import json
import math
import os
import socket
import urllib.error
import urllib.parse
import urllib.request

from testing import ALERTS, RULES, Program, check, read, wait_for

CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
  - job_name: tensorpool
    static_configs: [{{targets: ["{target}"]}}]
    authorization: {{credentials_file: {token_file}}}
"""


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def fetch(url, token=None):
    """Returns the text, or None if nothing listens yet or the answer is an error."""
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


class Prometheus(Program):
    def __init__(self, folder, target, token_file):
        self.url = f"http://{free_address()}"
        self.log = os.path.join(folder, "prometheus.log")
        configuration = os.path.join(folder, "prometheus.yml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(rules=json.dumps([RULES, ALERTS]), target=target,
                                            token_file=token_file))
        with open(self.log, "w", encoding="utf-8") as log:
            super().__init__("prometheus", f"--config.file={configuration}",
                             f"--storage.tsdb.path={folder}/data",
                             f"--web.listen-address={self.url[len('http://'):]}",
                             "--log.level=warn", log=log)

    def wait_until_ready(self):
        def is_ready():
            check(self.runs(), f"prometheus ended:\n{read(self.log)}")
            return fetch(f"{self.url}/-/ready")
        wait_for("prometheus is ready", is_ready)
        return self

    def query(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            return check(False, f"{parameters}: {error.read().decode()}")

    def samples(self, expression):
        """Returns the present samples that are numbers."""
        return [one for one in self.query("query", query=expression)["result"]
                if not math.isnan(float(one["value"][1]))]

    def rules(self):
        return [rule for group in self.query("rules")["groups"] for rule in group["rules"]]
