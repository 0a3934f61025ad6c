# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Debian's Prometheus, which looks at the node once a second and is asked by its HTTP API."""

import json
import socket
import urllib.parse
import urllib.request

from support.processes import until

from .node import REPOSITORY

CONFIGURATION = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
rule_files: {rules}
scrape_configs:
"""
JOB = """\
  - job_name: {name}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
    scrape_interval: {seconds}s
    scrape_timeout: {seconds}s
"""


def free_port():
    """One that nobody has: the kernel does not give it to who asks for any for a while."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """`prometheus(EXPRESSION)` is what it gives at this moment: [{"metric": labels, "value": number}]."""

    def __init__(self, node, jobs):
        """`jobs`: {name: (port, seconds between two scrapes)}. It knows the rules of dashboards/rules."""
        self.folder = node.work / "prometheus"
        self.folder.mkdir()
        configuration = self.folder / "prometheus.yml"
        rules = json.dumps([str(rule) for rule in sorted((REPOSITORY / "dashboards/rules").glob("*.yaml"))])
        configuration.write_text(CONFIGURATION.format(rules=rules) + "".join(
            JOB.format(name=name, port=port, seconds=seconds) for name, (port, seconds) in jobs.items()))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = node.start(
            "prometheus", "prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}")
        until("Prometheus is ready", self._ready, 60)

    def _ready(self):
        assert self.process.ended() is None, self.process.log()
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def api(self, path, **parameters):
        """The data that /api/v1/PATH gives."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}", timeout=20) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    def __call__(self, expression, time=None):
        data = self.api("query", query=expression, **({} if time is None else {"time": time}))
        if data["resultType"] in ("scalar", "string"):
            return [{"metric": {}, "value": float(data["result"][1])}]
        assert data["resultType"] == "vector", data
        return [{"metric": each["metric"], "value": float(each["value"][1])} for each in data["result"]]

    def values(self, expression):
        return [each["value"] for each in self(expression)]

    def until(self, expression, holds=bool, seconds=60):
        """Until what it gives for the expression `holds`, as default: until it gives anything."""
        return until(expression, lambda: holds(found := self(expression)) and found, seconds, 0.5)
