# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What is wrong with a dashboard: `faults` says it in sentences. It knows nothing of how the dashboards are made."""

import itertools
import re

_WIDTH = 24
_DATASOURCE = "${datasource}"
_WANTED = ["datasource", "node", "namespace", "pod"]
_BUILT_IN = {"__rate_interval", "__interval", "__range"}
_LEAST_WORDS = 40


def variables_in(text):
    return set(re.findall(r"\$\{?(\w+)\}?", text))


def unit_of(expr):
    """The unit of what an expression gives, as Grafana calls it."""
    inner = re.sub(r"\[[^\]]*\]|\{[^{}]*\}", "", expr)
    # Of a heat map: what its buckets are of.
    if "histogram_quantile" in inner or "_seconds_bucket" in inner or re.search(r"\b1 / \(", inner):
        return "s"
    if re.search(r"_seconds_sum\b", inner) or re.search(r" / (?!1000\b)", inner):
        return "percentunit"
    if re.search(r"_time_seconds\b.*\* 1000", inner):
        return "dateTimeFromNow"
    if re.match(r"count\b", inner):
        return "none"
    if "rate(" in inner:
        return "binBps" if "_bytes_total" in inner else "ops"
    if re.search(r"_bytes(_total)?\b", inner):
        return "bytes"
    if re.search(r"_ratio\b", inner):
        return "percentunit"
    return "s" if re.search(r"_seconds\b", inner) else "none"


def _columns(panel):
    """{refId: the name of its column} of a table."""
    renamed = {}
    for each in panel.get("transformations", []):
        renamed.update(each["options"].get("renameByName", {}))
    only = len(panel["targets"]) == 1
    return {target["refId"]: renamed.get("Value" if only else f"Value #{target['refId']}") for target in panel["targets"]}


def _unit(panel, target):
    """The unit in which a target is shown."""
    field = panel.get("fieldConfig", {})
    if panel["type"] != "table":
        return field.get("defaults", {}).get("unit")
    name = _columns(panel)[target["refId"]]
    for override in field.get("overrides", []):
        if override["matcher"] == {"id": "byName", "options": name}:
            for each in override["properties"]:
                if each["id"] == "unit":
                    return each["value"]
    return None


def _of_variables(dashboard):
    listed = {each["name"]: each for each in dashboard.get("templating", {}).get("list", [])}
    for name in _WANTED:
        if name not in listed:
            yield f"no variable {name}"
    used = set()
    for name, each in listed.items():
        if name == "datasource":
            if (each["type"], each["query"]) != ("datasource", "prometheus"):
                yield "variable datasource selects no data source of Prometheus"
            continue
        query = each["query"]["query"] if isinstance(each["query"], dict) else each["query"]
        if not re.fullmatch(r"label_values\(.+, \w+\)", query):
            yield f"variable {name} is no label_values query"
        if each.get("datasource", {}).get("uid") != _DATASOURCE:
            yield f"variable {name} has a data source of its own"
        if each.get("includeAll") and each.get("allValue") != ".*":
            yield f"variable {name}: all of it leaves out what has an empty label"
        used |= variables_in(query)
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            used |= variables_in(target["expr"])
    for name in sorted(set(listed) - used - {"datasource"}):
        yield f"variable {name} is not used"
    for name in sorted(used - set(listed) - _BUILT_IN):
        yield f"variable {name} is used and not there"


def _of_texts(panel, alerts, events):
    text = panel.get("description", "")
    if len(text) < _LEAST_WORDS or text.count(". ") + text.endswith(".") < 2:
        yield f"the description says too little: {text!r}"
    for name in re.findall(r"\bSluice[A-Z]\w+", text):
        if name not in alerts and name not in events:
            yield f"the description names {name}, which is neither an alert nor an event"


def _of_targets(panel):
    if panel.get("datasource", {}).get("uid") != _DATASOURCE:
        yield "has a data source of its own"
    if not panel.get("targets"):
        yield "asks nothing"
        return
    references = [target.get("refId") for target in panel["targets"]]
    if None in references or len(set(references)) < len(references):
        yield "two targets have one refId"
    for target in panel["targets"]:
        if target.get("datasource", {}).get("uid") != _DATASOURCE:
            yield f"a target has a data source of its own: {target['expr']}"
        shown, is_in = _unit(panel, target), unit_of(target["expr"])
        if shown != is_in:
            yield f"shows {target['expr']} in the unit {shown}, and it is in {is_in}"
        if re.search(r'\b(?:rate|increase)\(sluice_loan\w+\{(?![^}]*lender_id!="0")', target["expr"]):
            yield f"counts what forgotten pairs had twice: {target['expr']}"
        if not target.get("legendFormat"):
            yield f"a target has no legend: {target['expr']}"


def _of_places(panels):
    for panel in panels:
        at = panel["gridPos"]
        if at["w"] < 1 or at["h"] < 1 or at["x"] < 0 or at["y"] < 0 or at["x"] + at["w"] > _WIDTH:
            yield f"'{panel['title']}' is not within the width of {_WIDTH}"
    for one, two in itertools.combinations(panels, 2):
        a, b = one["gridPos"], two["gridPos"]
        if a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]:
            yield f"'{one['title']}' and '{two['title']}' overlap"


def faults(dashboard, alerts=(), events=()):
    """Sentences. `alerts` and `events`: what descriptions may name."""
    found = [f"has {key}: it is an export, which asks for its data source" for key in ("__inputs", "__requires") if key in dashboard]
    if not re.fullmatch(r"sluice-[a-z-]{1,33}", dashboard.get("uid", "")):
        found.append("has no uid of its own")
    if dashboard.get("id") is not None:
        found.append("has the id of one Grafana")
    if dashboard.get("schemaVersion", 0) < 39:
        found.append("is in the form of an old Grafana")
    if len(dashboard.get("description", "")) < _LEAST_WORDS:
        found.append("does not say what it is for")
    panels = dashboard["panels"]
    ids = [panel.get("id") for panel in panels]
    if len(set(ids)) < len(ids):
        found.append("two panels have one id")
    titles = [panel["title"] for panel in panels if panel["type"] != "row"]
    found += [f"two panels are called '{title}'" for title in sorted({title for title in titles if titles.count(title) > 1})]
    found += _of_variables(dashboard)
    for panel in panels:
        if panel["type"] != "row":
            found += [f"'{panel['title']}' {fault}" for fault in (*_of_texts(panel, alerts, events), *_of_targets(panel))]
    return [*found, *_of_places(panels)]
