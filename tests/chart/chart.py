# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the tests share: rendering the chart, reading what came out, and saying which value a test is about."""

import functools
import json
import os
import pathlib
import subprocess

import pytest
import yaml

REPO = pathlib.Path(__file__).resolve().parents[2]
CHART = REPO / "charts" / "sluice"
HELM = os.path.join(os.environ["SLUICE_TOOLS"], "helm")
_VERSION = ["--kube-version", "1.26.0"]
# A cluster that has Prometheus's operator; of one that has not is test_monitoring.
_CLUSTER = [*_VERSION, "--api-versions", "monitoring.coreos.com/v1"]
WITHOUT_OPERATOR = tuple(_VERSION)

# The values that tests are about.
COVERED = set()


def nested(values):
    """{"a.b": 1} as {"a": {"b": 1}}."""
    tree = {}
    for path, setting in values.items():
        at = tree
        *folders, last = path.split(".")
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = setting
    return tree


def run_helm(command, values, *arguments, chart=CHART):
    """`values`: settings by path. The finished process."""
    return subprocess.run([HELM, *command, str(chart), "--namespace", "sluice", "--values", "-", *arguments],
                          input=json.dumps(nested(values)), capture_output=True, text=True, check=False)


def render_text(values, chart=CHART, arguments=tuple(_CLUSTER)):
    done = run_helm(["template", "sluice"], values, *arguments, chart=chart)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(values, arguments=tuple(_CLUSTER)):
    """The text with which values are refused."""
    done = run_helm(["template", "sluice"], values, *arguments)
    assert done.returncode != 0, f"{values} is accepted"
    return done.stderr


class DaemonSet:
    def __init__(self, document):
        self.document = document
        self.name = document["metadata"]["name"]
        self.template = document["spec"]["template"]
        self.pod = self.template["spec"]
        self.container, *self.beside = self.pod["containers"]
        self.containers = [*self.pod.get("initContainers", []), self.container, *self.beside]
        self.args = self.container["args"]
        # Kubernetes takes the last one of a name; here is only one.
        names = [entry["name"] for entry in self.container["env"]]
        assert len(set(names)) == len(names), names
        self.env = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in self.container["env"]}
        self.volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        self.mounts = {mount["name"]: mount for mount in self.container["volumeMounts"]}


class Rendered:
    def __init__(self, text):
        self.documents = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]

    def all(self, kind):
        return [document for document in self.documents if document["kind"] == kind]

    def one(self, kind):
        (found,) = self.all(kind)
        return found

    def daemon_set(self, component, config="default"):
        (found,) = [each for each in self.all("DaemonSet")
                    if each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] == component
                    and each["spec"]["selector"]["matchLabels"]["sluice.dev/config"] == config]
        return DaemonSet(found)

    @property
    def node(self):
        return self.daemon_set("node")

    @property
    def plugin(self):
        return self.daemon_set("device-plugin")

    @property
    def both(self):
        return [self.node, self.plugin]


def render(values=None, **others):
    return Rendered(render_text(values or {}, **others))


@functools.cache
def defaults():
    return render()


def covers(path):
    """A test of the value at `path` that renders the chart itself."""
    COVERED.add(path)
    return lambda test: test


def value(path, setting, beside=None):
    """A test of the value at `path`: its argument `rendered` is the chart with it. `beside`: other values."""
    return table(None, (path, setting, None), beside=beside)


def table(name, *cases, beside=None):
    """The same for several values: `cases` are (path, setting, expected), and `name` is the argument for the last."""
    COVERED.update(path for path, _, _ in cases)
    ids = [f"{path}={json.dumps(setting)[:40]}" for path, setting, _ in cases]
    given = [(path, setting, beside or {}) for path, setting, _ in cases]
    if name is None:
        return pytest.mark.parametrize("rendered", given, ids=ids, indirect=True)
    return pytest.mark.parametrize(["rendered", name], [(one, case[2]) for one, case in zip(given, cases)], ids=ids,
                                   indirect=["rendered"])
