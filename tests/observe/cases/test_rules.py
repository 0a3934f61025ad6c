# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The alerts: Prometheus takes them, each is tested both ways, and each has a page that says what to do."""

import re
import subprocess

import pytest
import yaml
from expressions import REPO, RULES, RUNBOOKS, alerts

ALERTS = alerts()
TESTS = sorted((RULES.parent / "tests").glob("*.yaml"))
SEVERITIES = {"critical", "warning", "info"}
HEADINGS = ["## What it means", "## How to see it", "## What to do"]


def promtool(*arguments):
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)


def test_prometheus_takes_them():
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_when_they_fire(file):
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


def covered(files):
    """Which alerts fire in a test, and which do not in one."""
    fires, quiet = set(), set()
    for file in files:
        for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]:
            for each in test.get("alert_rule_test", []):
                (fires if each.get("exp_alerts") else quiet).add(each["alertname"])
    return fires, quiet


def test_each_is_tested_both_ways():
    fires, quiet = covered(TESTS)
    assert sorted(set(ALERTS) - fires) == [] and sorted(set(ALERTS) - quiet) == []
    assert sorted((fires | quiet) - set(ALERTS)) == []


def test_one_that_is_tested_one_way_is_noticed(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text("tests: [{alert_rule_test: [{alertname: A, eval_time: 1m, exp_alerts: [{}]}, {alertname: B, eval_time: 1m}]}]")
    assert covered([file]) == ({"A"}, {"B"})


@pytest.mark.parametrize("tests, right, wrong", [
    ("daemons", "sluice_up) == 0", "sluice_up) == 2"), ("daemons", "for: 2m", "for: 20m"), ("daemons", "for: 2m", "for: 0m"),
    ("daemons", "severity: critical", "severity: info"), ("daemons", "> 0.001", "> 1"), ("daemons", "> 0.001", "> 0"),
    ("daemons", "sluice_answer_age_seconds) > 30", "sluice_answer_age_seconds) > 300"), ("daemons", "sluice_answer_age_seconds) > 30", "sluice_answer_age_seconds) > 3"),
    ("daemons", "sluice_keeper_up) == 0", "sluice_keeper_up) == 1"), ("daemons", "[1h])) > 5", "[1h])) > 50"), ("daemons", "for: 1m", "for: 30m"),
    ("daemons", "min_over_time", "max_over_time"), ("days", "for: 24h", "for: 1h"), ("days", "> 0) > 1", "> 0) > 0"),
    ("memory", '{reason="place"}', ""), ("memory", "_waiting_seconds{reason=\"place\"}", "_waiting_seconds{reason=\"turn\"}"), ("memory", "> 0.9 *", "> 1.9 *"), ("memory", "> 0.05 *", "> 0 *"),
    ("jobs", "> 300\n", "> 30000\n"), ("jobs", '{reason!="admission"}', ""), ("jobs", "unless sluice_job_refusals_total offset 15m", ""),
    ("jobs", '{reason!="gate"}', ""),
    ("plugin", '{result="failed"}', ""), ("plugin", '{state="unhealthy"}', ""),
])
def test_a_rule_that_says_something_else_is_noticed(tmp_path, tests, right, wrong):
    """The tests of the rules can fail: each of these changes makes one fail."""
    text = RULES.read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "tests").mkdir()
    (tmp_path / RULES.name).write_text(text.replace(right, wrong))
    file = tmp_path / "tests" / f"{tests}.yaml"
    file.write_text((RULES.parent / "tests" / file.name).read_text(encoding="utf-8"))
    assert promtool("check", "rules", tmp_path / RULES.name).returncode == 0
    assert promtool("test", "rules", file).returncode != 0


@pytest.mark.parametrize("name", ALERTS)
def test_it_says_what_is_the_matter(name):
    rule = ALERTS[name]
    assert name.startswith("Sluice")
    assert rule["labels"] == {"severity": rule["labels"]["severity"]} and rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert len(rule["annotations"]["summary"]) >= 30 and len(rule["annotations"]["description"]) >= 40
    assert rule["annotations"]["runbook_url"] == f"docs/operations/runbooks/{name}.md"


def test_each_has_a_page_and_each_page_an_alert():
    assert sorted(file.stem for file in RUNBOOKS.glob("*.md")) == sorted(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_its_page(name):
    text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    assert f"# {name}\n" in text
    assert re.findall(r"^## .+$", text, re.MULTILINE) == HEADINGS
    for heading, body in zip(HEADINGS, re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]):
        assert len(body.strip()) >= 60, heading
    seeing = text.split(HEADINGS[1])[1].split(HEADINGS[2])[0]
    assert re.search(r"sluice (status|explain|doctor|check-log)|kubectl", seeing), "names no command"
    assert f"severity `{ALERTS[name]['labels']['severity']}`" in text.lower() or f"Severity: {ALERTS[name]['labels']['severity']}" in text


def keys_of(value):
    """All keys in a JSON value."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_what_pages_say_that_status_tells_is_there(sluice):
    told = re.findall(r"`sluice status --json`, keys ((?:`\w+`(?:, )?)+)", "".join(page.read_text() for page in RUNBOOKS.glob("*.md")))
    wanted = set(re.findall(r"\w+", " ".join(told)))
    assert len(told) > 5 and wanted - keys_of(sluice.status(0)) == set()


def test_pages_name_a_table_that_is_there(sluice):
    """What they say of `sluice status` without --json is a phase, or of what its table has."""
    head = sluice.sluice("status", "--runtime-dir", sluice.runtime / "0").stdout
    assert [word for word in ("JOB", "NAME", "PHASE", "HELD", "WAITS FOR", "policy", "free") if word not in head] == []


def test_the_table_of_alerts():
    """docs/operations/observability.md has a row for each, with its severity."""
    page = (REPO / "docs" / "operations" / "observability.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \[(Sluice\w+)\]\(runbooks/\w+\.md\) \| (\w+) \|", page, re.MULTILINE))
    assert rows == {name: rule["labels"]["severity"] for name, rule in ALERTS.items()}


# Alerts whose expression is true on the node of the other cases, with what makes it so (bed/history.py); test_failures.py is about
# the other alerts.
ONLY_AFTER = {"SluiceRefusals": "refuse", "SluiceBypass": "pass_by"}


@pytest.mark.parametrize("name", ONLY_AFTER)
def test_what_happened_is_seen_by_it(prometheus, everything, name):
    assert ONLY_AFTER[name] in everything
    prometheus.until(f"last_over_time(({ALERTS[name]['expr']})[30m:1s])", seconds=30)


def test_prometheus_evaluates_them(prometheus):
    """As it does on a cluster: all of them, without an error."""
    loaded = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    assert sorted(rule["name"] for rule in loaded if rule["type"] == "alerting") == sorted(ALERTS)
    assert [rule for rule in loaded if rule["health"] == "err"] == []
