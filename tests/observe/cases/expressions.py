# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the dashboards and the alerts ask Prometheus: their expressions, and the metrics in these."""

import json
import pathlib
import re

import yaml

REPO = pathlib.Path(__file__).resolve().parents[3]
DASHBOARDS = REPO / "dashboards"
RULES = DASHBOARDS / "rules" / "sluice.yaml"
RUNBOOKS = REPO / "docs" / "operations" / "runbooks"

# What Grafana puts in for its own variables; all that the user may choose is chosen.
_GRAFANA = {"__rate_interval": "1m", "__interval": "15s", "__range": "5m"}


def dashboards():
    """{name: dashboard}."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(DASHBOARDS.glob("*.json"))}


def alerts():
    """{name: rule}."""
    return {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]}


def substituted(expr, chosen=None, grafana=None):
    """As Grafana sends it, with everything selected, or `chosen`: {variable: pattern}."""
    values = {**_GRAFANA, **(grafana or {})}
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1]) or (chosen or {}).get(found[1], ".*"), expr)


def panel_expressions():
    """(dashboard, title, expression) of each target, as it is written."""
    return [(name, panel["title"], target["expr"]) for name, dashboard in dashboards().items()
            for panel in dashboard["panels"] for target in panel.get("targets", [])]


def selectors(expr):
    """The metrics of an expression with what is asked of their labels, as expressions of their own."""
    return re.findall(r"\bsluice_\w+(?:\{[^{}]*\})?", expr)


def metrics(expr):
    """Names in an expression, of families: a histogram's parts are called as the histogram."""
    return {re.sub(r"(_seconds)_(?:bucket|sum|count)$", r"\1", name) for name in re.findall(r"\bsluice_\w+", expr)}
