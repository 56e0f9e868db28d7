"""The queries of the Grafana dashboard."""
import json
import re

from testing import GRAFANA


def load():
    with open(GRAFANA, encoding="utf-8") as file:
        return json.load(file)


def panels():
    return [panel for panel in load()["panels"] if panel["type"] != "row"]


def expressions():
    """Pairs of a panel or annotation and its expression."""
    dashboard = load()
    found = [(f"panel {panel['title']}", target["expr"])
             for panel in panels() for target in panel["targets"]]
    return found + [(f"annotation {one['name']}", one["expr"])
                    for one in dashboard["annotations"]["list"] if "expr" in one]


def variables():
    """Pairs of a variable that Prometheus fills, and its query."""
    return [(one["name"], one["query"]["query"]) for one in load()["templating"]["list"]
            if one["type"] == "query"]


def fill_in(expression, values):
    """Replaces variables as Grafana does; unknown variables are an error."""
    for name, value in values.items():
        expression = re.sub(rf"\${name}\b", lambda _, value=value: value, expression)
    if "$" in expression:
        raise ValueError(f"unknown variable in {expression}")
    return expression
