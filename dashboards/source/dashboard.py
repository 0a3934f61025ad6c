# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A dashboard: its variables, and where its panels are."""

from .queries import DATASOURCE

_WIDTH = 24


def _variable(name, label, query):
    """One that selects any number of a label's values. All of them is everything, a label that is empty included."""
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": f"Variable-{name}"}, "refresh": 2, "sort": 1, "multi": True, "includeAll": True,
            "allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "hide": 0, "options": [], "regex": ""}


def _variables():
    of_gpu = 'node=~"$node",gpu=~"$gpu"'
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0,
         "includeAll": False, "multi": False, "options": [], "regex": "", "current": {}},
        _variable("node", "Node", "label_values(sluice_up, node)"),
        _variable("gpu", "GPU", 'label_values(sluice_up{node=~"$node"}, gpu)'),
        _variable("namespace", "Namespace", f"label_values(sluice_job_held_bytes{{{of_gpu}}}, namespace)"),
        _variable("pod", "Pod", f'label_values(sluice_job_held_bytes{{{of_gpu},namespace=~"$namespace"}}, pod)'),
    ]


class Dashboard:
    def __init__(self, uid, title, description):
        self.uid = uid
        self._title = title
        self._description = description
        self._panels = []
        # Where the next panel is, and how far down those of its line reach.
        self._x = self._y = self._below = 0

    def row(self, title):
        self._x, self._y = 0, self._below
        self._place({"type": "row", "title": title, "collapsed": False, "panels": []}, _WIDTH, 1)

    def add(self, width, height, *panels):
        """Side by side, as long as a line has room."""
        for panel in panels:
            self._place(panel, width, height)

    def below(self, width, height, panel):
        """Under the last one of this line, beside a higher one."""
        last = self._panels[-1]["gridPos"]
        self._append(panel, {"x": last["x"], "y": last["y"] + last["h"], "w": width, "h": height})

    def _place(self, panel, width, height):
        if self._x + width > _WIDTH:
            self._x, self._y = 0, self._below
        self._append(panel, {"x": self._x, "y": self._y, "w": width, "h": height})
        self._x += width

    def _append(self, panel, where):
        self._panels.append({"id": len(self._panels) + 1, "gridPos": where, **panel})
        self._below = max(self._below, where["y"] + where["h"])

    def json(self):
        return {
            "uid": self.uid, "title": self._title, "description": self._description, "tags": ["sluice"], "schemaVersion": 39,
            "version": 1, "editable": True, "graphTooltip": 1, "refresh": "30s", "timezone": "", "weekStart": "", "fiscalYearStartMonth": 0,
            "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "liveNow": False, "annotations": {"list": []},
            "links": [{"type": "dashboards", "tags": ["sluice"], "title": "Sluice", "asDropdown": True, "includeVars": True,
                       "keepTime": True, "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}],
            "templating": {"list": _variables()}, "panels": self._panels}
