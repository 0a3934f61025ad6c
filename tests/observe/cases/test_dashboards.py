# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The dashboards: what is committed is what is made, nothing is wrong with them, and Prometheus understands them."""

import copy
import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from dashboard_checks import faults, unit_of
from expressions import DASHBOARDS, REPO, alerts, dashboards, metrics, panel_expressions, substituted

ALL = dashboards()
# Of the device plugin, on pods and nodes.
EVENTS = {"SluiceBypassed", "SluiceRefused", "SluiceGpuRefused"}
MOST_BYTES = 1 << 20  # of a ConfigMap


def test_there_are_five():
    assert sorted(ALL) == ["health", "job-detail", "memory-flow", "node-overview", "scheduler"]
    assert sorted(dashboard["uid"] for dashboard in ALL.values()) == [f"sluice-{name}" for name in sorted(ALL)]
    assert len({dashboard["title"] for dashboard in ALL.values()}) == 5


def build(folder, *arguments):
    return subprocess.run([sys.executable, "-B", folder / "build.py", *arguments], capture_output=True, text=True, check=False)


def test_what_is_committed_is_what_is_made():
    done = build(DASHBOARDS, "--check")
    assert done.returncode == 0, done.stderr


def test_a_dashboard_that_was_edited_by_hand_is_noticed(tmp_path):
    shutil.copytree(DASHBOARDS, tmp_path / "d")
    file = tmp_path / "d" / "health.json"
    file.write_text(file.read_text().replace("Health and drift", "Health"))
    (tmp_path / "d" / "own.json").write_text("{}")
    done = build(tmp_path / "d", "--check")
    assert done.returncode != 0 and "health.json" in done.stderr and "own.json" in done.stderr
    assert build(tmp_path / "d").returncode != 0, "own.json is still nobody's"
    (tmp_path / "d" / "own.json").unlink()
    assert build(tmp_path / "d").returncode == 0 and build(tmp_path / "d", "--check").returncode == 0


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_wrong_with_it(name):
    assert faults(ALL[name], alerts(), EVENTS) == []


@pytest.mark.parametrize("name", ALL)
def test_it_fits_into_a_config_map(name):
    assert (DASHBOARDS / f"{name}.json").stat().st_size < MOST_BYTES // 2


def test_the_events_are_the_plugins():
    sources = "".join(file.read_text() for file in (REPO / "deviceplugin").rglob("*.*"))
    assert {name for name in EVENTS if f'"{name}"' not in sources} == set()


def panel(dashboard, title):
    (found,) = [each for each in dashboard["panels"] if each["title"] == title]
    return found


def held(dashboard):
    return panel(dashboard, "Held memory by pod")


def put(place, key, setting):
    place[key] = setting


def without(place, key):
    del place[key]


BREAKS = {
    "a fixed data source": (lambda d: put(held(d)["targets"][0], "datasource", {"uid": "abc"}), "has a data source of its own"),
    "a panel's fixed data source": (lambda d: put(held(d), "datasource", {"uid": "abc"}), "has a data source of its own"),
    "an export": (lambda d: put(d, "__inputs", []), "is an export"),
    "no uid": (lambda d: put(d, "uid", ""), "no uid"),
    "an id": (lambda d: put(d, "id", 5), "id of one Grafana"),
    "an old form": (lambda d: put(d, "schemaVersion", 16), "old Grafana"),
    "no description": (lambda d: without(held(d), "description"), "says too little"),
    "a short description": (lambda d: put(held(d), "description", "Held memory."), "says too little"),
    "an alert that does not exist": (lambda d: put(held(d), "description", held(d)["description"] + " SluiceNone."), "SluiceNone"),
    "no unit": (lambda d: without(held(d)["fieldConfig"]["defaults"], "unit"), "in the unit None"),
    "a wrong unit": (lambda d: put(held(d)["fieldConfig"]["defaults"], "unit", "s"), "in the unit s, and it is in bytes"),
    "a column without its unit": (lambda d: put(panel(d, "Who lent what to whom")["fieldConfig"], "overrides", []), "in the unit None"),
    "an unused variable": (lambda d: d["templating"]["list"].append({**d["templating"]["list"][1], "name": "rack"}), "rack is not used"),
    "a missing variable": (lambda d: d["templating"]["list"].pop(), "no variable pod"),
    "an unknown variable": (lambda d: put(held(d)["targets"][0], "expr", "sluice_pool_bytes{node=~\"$rack\"}"), "rack is used"),
    "all without empty labels": (lambda d: put(d["templating"]["list"][3], "allValue", None), "empty label"),
    "a hand-written variable": (lambda d: put(d["templating"]["list"][1], "query", {"query": "n1,n2"}), "no label_values"),
    "a variable's data source": (lambda d: put(d["templating"]["list"][1], "datasource", {"uid": "x"}), "variable node has a data source"),
    "two of an id": (lambda d: put(d["panels"][1], "id", d["panels"][0]["id"]), "two panels have one id"),
    "two of a name": (lambda d: put(d["panels"][2], "title", held(d)["title"]), "two panels are called"),
    "an overlap": (lambda d: put(held(d)["gridPos"], "w", 20), "overlap"),
    "beyond the edge": (lambda d: put(held(d)["gridPos"], "x", 20), "not within the width"),
    "two of a refId": (lambda d: put(held(d)["targets"][1], "refId", "A"), "one refId"),
    "nothing asked": (lambda d: put(held(d), "targets", []), "asks nothing"),
    "forgotten pairs": (lambda d: put(panel(d, "Who lent what to whom")["targets"][1], "expr",
                                      panel(d, "Who lent what to whom")["targets"][1]["expr"].replace(',lender_id!="0"', "")), "twice"),
    "no legend": (lambda d: put(held(d)["targets"][0], "legendFormat", ""), "no legend"),
}


@pytest.mark.parametrize("how", BREAKS)
def test_the_checker_finds(how):
    dashboard = copy.deepcopy(ALL["memory-flow"])
    change, words = BREAKS[how]
    change(dashboard)
    assert any(words in fault for fault in faults(dashboard, alerts(), EVENTS))


@pytest.mark.parametrize("expr, unit", [
    ("sum(sluice_job_held_bytes{a=\"b\"})", "bytes"), ("sum(rate(sluice_job_lent_bytes_total[1m]))", "binBps"),
    ("sum(increase(sluice_job_lent_bytes_total[1m]))", "bytes"), ("sum(rate(sluice_job_launches_total[1m])) / 1000", "ops"),
    ("sum(a_bytes) / sum(b_bytes)", "percentunit"), ("sum(rate(x_seconds_sum[1m]))", "percentunit"), ("max(x_seconds)", "s"),
    ("histogram_quantile(0.5, sum by (le) (rate(x_seconds_bucket[1m])))", "s"), ("max(x_ratio)", "percentunit"),
    ("1 / (sum(rate(x_total[1m])) > 0)", "s"), ("max(x_start_time_seconds) * 1000", "dateTimeFromNow"),
    ("count(x_seconds)", "none"), ("sum(increase(x_total[1m]))", "none"),
])
def test_units(expr, unit):
    assert unit_of(expr) == unit


def test_colors_are_told_apart_without_red_and_green():
    """Fixed colors are Okabe's and Ito's; the palette goes by name, so that a pod has one color on all dashboards."""
    palette = {"#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#8E8E8E"}
    for dashboard in ALL.values():
        text = json.dumps(dashboard)
        assert set(re.findall(r"#[0-9A-Fa-f]{6}\b", text)) <= palette
        # Names of Grafana's own colors are red, green and so on.
        assert not re.search(r'"(?:color|fixedColor)": "(?!#|transparent)', text)
        for each in dashboard["panels"]:
            if each["type"] == "timeseries":
                assert each["fieldConfig"]["defaults"]["color"] == {"mode": "palette-classic-by-name"}


def check_rules(tmp_path, expressions):
    """Prometheus's own parser, over expressions as those of recording rules."""
    rules = [{"record": f"parsed:{at}", "expr": substituted(expr)} for at, expr in enumerate(expressions)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "parsed", "rules": rules}]}))
    return subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)


def test_prometheus_understands_each_expression(tmp_path):
    done = check_rules(tmp_path, [expr for _, _, expr in panel_expressions()])
    assert done.returncode == 0, done.stdout + done.stderr
    variables = [each["query"]["query"] for dashboard in ALL.values() for each in dashboard["templating"]["list"] if each["type"] == "query"]
    asked = [re.fullmatch(r"label_values\((.+), \w+\)", query)[1] for query in variables]
    done = check_rules(tmp_path, asked)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_expression_that_it_does_not_understand_is_noticed(tmp_path):
    assert check_rules(tmp_path, ["sum by (node (sluice_up)"]).returncode != 0


# What there is only after something that does not happen by itself (bed/history.py): metrics with what makes them.
ONLY_AFTER = {
    "sluice_job_refusals_total": "refuse",
    "sluice_plugin_allocate_seconds": "misallocate",
}


def live():
    """(dashboard, title, expression, what it takes) of each target."""
    for name, title, expr in panel_expressions():
        causes = {ONLY_AFTER[metric] for metric in metrics(expr) if metric in ONLY_AFTER}
        assert len(causes) <= 1, expr
        yield pytest.param(expr, next(iter(causes), None), id=f"{name}/{title}/{len(expr)}")


def numbers(found):
    """Not that there is no number (0 / 0)."""
    return [each for each in found if each["value"] == each["value"]]


@pytest.mark.parametrize("expr, cause", live())
def test_it_shows_something(request, prometheus, expr, cause):
    """With everything selected, on a node under load; or since something happened."""
    asked = substituted(expr)
    if cause is None:
        prometheus.until(asked, numbers, seconds=60)
        return
    assert cause in request.getfixturevalue("everything")
    # It may be over by now.
    prometheus.until(f"last_over_time(({asked})[15m:5s])", numbers, seconds=30)


def test_what_waits_for_a_failure_is_asked_for():
    """The table holds nothing that no dashboard has."""
    asked = set().union(*(metrics(expr) for _, _, expr in panel_expressions()))
    assert set(ONLY_AFTER) <= asked


def test_each_variable_has_values(prometheus):
    for dashboard in ALL.values():
        for each in dashboard["templating"]["list"]:
            if each["type"] == "query":
                selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", each["query"]["query"]).groups()
                found = prometheus.until(f"count by ({label}) ({substituted(selector)})")
                assert all(one["metric"].get(label) for one in found) or label == "namespace", each["name"]


def test_one_that_is_selected_is_shown_alone(prometheus):
    """The variables reach the expressions: a pod's name selects it."""
    owner = prometheus.until('sluice_job_held_bytes{namespace!=""}')[0]["metric"]
    chosen = {"node": owner["node"], "gpu": owner["gpu"], "namespace": owner["namespace"], "pod": owner["pod"]}
    expr = held(ALL["memory-flow"])["targets"][0]["expr"]
    assert [each["metric"] for each in prometheus.until(substituted(expr, chosen))] == [{"namespace": owner["namespace"], "pod": owner["pod"]}]
    assert prometheus(substituted(expr, {**chosen, "pod": "nobody"})) == []
