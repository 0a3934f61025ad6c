# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Panels, as Grafana 10 and 11 know them."""

from . import queries

# Okabe and Ito's colours: told apart by those who do not see red and green, on light and on dark.
ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, GREY = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#8E8E8E")

BYTES, BYTES_PER_SECOND, SECONDS, SHARE, PER_SECOND, COUNT, MOMENT = (
    "bytes", "binBps", "s", "percentunit", "ops", "none", "dateTimeFromNow")

# Which words have the same colour on every dashboard.
_COLORS = {"pool": VERMILION, "free": GREEN, "reserve": GREY, "held": BLUE, "limit": VERMILION, "claim": ORANGE, "live": SKY,
           "request": GREEN, "base": PURPLE, "budget": ORANGE}


def named(name, **properties):
    """An override for the series of a name. A property is a path with `__` for its dots."""
    return _override("byName", name, properties)


def matching(pattern, **properties):
    return _override("byRegexp", pattern, properties)


def _override(matcher, options, properties):
    return {"matcher": {"id": matcher, "options": options},
            "properties": [{"id": path.replace("__", "."), "value": setting} for path, setting in properties.items()]}


def line(name, **properties):
    """A line over what is stacked."""
    return named(name, custom__stacking={"group": "A", "mode": "none"}, custom__fillOpacity=0, custom__lineWidth=2,
                 custom__lineStyle={"dash": [8, 4], "fill": "dash"}, **properties)


def colored(*names):
    return [named(name, color={"mode": "fixed", "fixedColor": _COLORS[name]}) for name in names]


def _panel(kind, title, description, targets, defaults, options, overrides=()):
    for at, each in enumerate(targets):
        each["refId"] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[at]
    return {"type": kind, "title": title, "description": description, "datasource": queries.DATASOURCE,
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options, "targets": targets}


def _thresholds(steps):
    """`steps`: (from which value on, color), the first from None."""
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}


def series(title, description, unit, *targets, stacked=False, overrides=(), minimum=0, highest=None, legend=("max", "lastNotNull")):
    """Lines over time."""
    defaults = {
        "unit": unit, "color": {"mode": "palette-classic-by-name"},
        "custom": {"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 40 if stacked else 10,
                   "showPoints": "never", "spanNulls": False,
                   "stacking": {"group": "A", "mode": "normal" if stacked else "none"}}}
    if minimum is not None:
        defaults["min"] = minimum
    if highest is not None:
        defaults["max"] = highest
    options = {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": list(legend)},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return _panel("timeseries", title, description, list(targets), defaults, options, overrides)


def stat(title, description, unit, *targets, steps=((None, BLUE),), mappings=(), text="auto"):
    """One number, or one for each series."""
    defaults = {"unit": unit, "color": {"mode": "thresholds"}, "thresholds": _thresholds(steps), "mappings": list(mappings)}
    options = {"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": text,
               "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    return _panel("stat", title, description, list(targets), defaults, options)


def words(**meanings):
    """Texts for values: words(v0="no", v1="yes")."""
    return [{"type": "value", "options": {key[1:]: {"text": text, "index": at} for at, (key, text) in enumerate(meanings.items())}}]


def heat(title, description, target):
    """A histogram over time."""
    options = {"calculate": False, "cellGap": 1, "legend": {"show": True}, "showValue": "never",
               "color": {"mode": "scheme", "scheme": "Viridis", "scale": "exponential", "exponent": 0.5, "steps": 64, "reverse": False},
               "rowsFrame": {"layout": "auto"}, "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
               "yAxis": {"axisPlacement": "left", "unit": SECONDS, "reverse": False}, "cellValues": {"unit": COUNT},
               "filterValues": {"le": 1e-9}, "exemplars": {"color": ORANGE}}
    return _panel("heatmap", title, description, [target], {"unit": SECONDS, "custom": {}}, options)


def states(title, description, *targets):
    """A bar for each series while it is there."""
    defaults = {"unit": COUNT, "color": {"mode": "fixed", "fixedColor": BLUE},
                "custom": {"fillOpacity": 80, "lineWidth": 0, "spanNulls": False},
                "mappings": [{"type": "value", "options": {"0": {"text": "no", "index": 0, "color": "transparent"},
                                                           "1": {"text": "yes", "index": 1}}}]}
    options = {"showValue": "never", "mergeValues": True, "rowHeight": 0.8, "alignValue": "left",
               "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False}, "tooltip": {"mode": "single", "sort": "none"}}
    return _panel("state-timeline", title, description, list(targets), defaults, options)


def table(title, description, columns, labels, overrides=()):
    """A row for each set of labels. `columns`: (name, unit, expression); `labels`: (label, name)."""
    targets = [queries.cells(expr) for _, _, expr in columns]
    names = {label: name for label, name in labels}
    hidden = {"Time": True}
    order = {label: at for at, (label, _) in enumerate(labels)}
    for at, (name, _, _) in enumerate(columns):
        # With one query Grafana calls its column "Value", with several "Value #A" and so on.
        field = "Value" if len(columns) == 1 else f"Value #{'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[at]}"
        names[field] = name
        order[field] = len(labels) + at
    panel = _panel("table", title, description, targets, {"unit": COUNT, "custom": {"align": "auto", "filterable": True}},
                   {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}},
                   [*[named(name, unit=unit) for name, unit, _ in columns], *overrides])
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "indexByName": order, "renameByName": names}}]
    return panel
