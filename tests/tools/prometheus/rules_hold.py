"""The rules and alerts are well-formed, and each alert is tested firing and not firing."""
import os
import re

from testing import ALERTS, DASHBOARD, HERE, RULES, check, need, read, run

SHOWN = os.path.join(HERE, "alerts_test.yml")


def alerts_of(expectation):
    """The alerts that a part of the test file queries, and whether it expects them."""
    name = re.search(r'alertname(?:="|: )(\w+)', expectation)[1]
    return name, not re.search(r"exp_samples: \[\]", expectation)


def check_that_each_is_shown():
    expectations = re.split(r"\n      - ", read(SHOWN))
    shown = {alerts_of(part) for part in expectations if "alertname" in part}
    for alert in re.findall(r"- alert: (\w+)", read(ALERTS)):
        for fires in (True, False):
            # The alert that fires without a target does not fire in tests that have one.
            check((alert, fires) in shown, f"no test shows {alert} {'' if fires else 'not '}firing")


need("promtool")
print(run("promtool", "check", "rules", RULES, ALERTS))
print(run("promtool", "check", "config", os.path.join(DASHBOARD, "prometheus.yml")))
print(run("promtool", "test", "rules", SHOWN))
check_that_each_is_shown()
