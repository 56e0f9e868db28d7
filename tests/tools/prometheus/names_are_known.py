"""Dashboard, rules and alerts use only metrics that exist, and the dashboard is consistent."""
import re
import sys

import dashboard
from testing import ALERTS, RULES, check, read, run


def check_names(text, where, known):
    for name in re.findall(r"[\w:]*\btensorpool_[\w:]*\w", text):
        check(name in known, f"{where} uses {name}, which is neither exported nor recorded")


def check_layout():
    panels = dashboard.load()["panels"]
    numbers = [panel["id"] for panel in panels]
    check(len(numbers) == len(set(numbers)), "two panels have the same number")
    taken = {}
    for panel in panels:
        position = panel["gridPos"]
        check(position["x"] + position["w"] <= 24, f"{panel['title']} extends beyond the right edge")
        for x in range(position["x"], position["x"] + position["w"]):
            for y in range(position["y"], position["y"] + position["h"]):
                other = taken.setdefault((x, y), panel["title"])
                check(other == panel["title"], f"{panel['title']} overlaps {other}")


def check_sources():
    """Each query uses the chosen Prometheus, and each variable is used."""
    queries = " ".join(expression for _, expression in dashboard.expressions())
    for name, _ in dashboard.variables():
        check(f"${name}" in queries, f"no panel uses the variable {name}")
    for panel in dashboard.panels():
        for user in [panel, *panel["targets"]]:
            source = user.get("datasource", panel["datasource"])  # Grafana asks the panel's
            check(source["uid"] == "${datasource}", f"{panel['title']}: other source")


metrics = run(sys.argv[1])
exported = set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))
rules = read(RULES)
known_names = exported | set(re.findall(r"record: (\S+)", rules))
check_names(re.sub(r"record: .*|name: .*", "", rules), "rules.yml", known_names)
expressions_of_alerts = re.findall(r"expr: (.*?)\n        (?:for|labels):", read(ALERTS), re.DOTALL)
check_names(" ".join(expressions_of_alerts), "alerts.yml", known_names)
for position, expression in dashboard.expressions() + dashboard.variables():
    check_names(expression, f"the dashboard's {position}", known_names)
check_layout()
check_sources()
print(f"{len(exported)} metrics, {len(dashboard.expressions())} expressions of the dashboard")
