# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Each value has a test, a comment in values.yaml and a row in README.md; what the chart says, the programs know."""

import importlib
import json
import pathlib
import re

import pytest
import yaml
from chart import CHART, COVERED, REPO, render
from test_rights import EVERYTHING

# Options of the device plugin that the chart knows before the program does.
AHEAD = set()
# Kubernetes's own, and what others look for: described as a whole.
WHOLE = {"affinity", "node.resources", "gateway.resources", "devicePlugin.resources", "dashboards.labels", "dashboards.annotations"}


def leaves(node, path=""):
    """(path, line, default) of each value."""
    for key, child in node.value:
        at = f"{path}.{key.value}" if path else key.value
        if isinstance(child, yaml.MappingNode) and child.value and at not in WHOLE:
            yield from leaves(child, at)
        else:
            yield at, key.start_mark.line, child


TEXT = (CHART / "values.yaml").read_text()
VALUES = list(leaves(yaml.compose(TEXT, yaml.SafeLoader)))
PATHS = [path for path, _, _ in VALUES]


def test_each_value_has_a_test():
    for file in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(file.stem)
    assert sorted(set(PATHS) - COVERED) == []
    assert sorted(COVERED - set(PATHS)) == []


def test_each_value_has_a_comment():
    lines = TEXT.splitlines()
    assert [path for path, line, _ in VALUES if not lines[line - 1].lstrip().startswith("# ")] == []


def test_each_value_has_a_row():
    rows = re.findall(r"^\| `([A-Za-z.]+)` \| (.*?) \| (.+) \|$", (CHART / "README.md").read_text(), re.MULTILINE)
    assert [path for path, _, _ in rows] == PATHS
    written = {path: default for path, default, _ in rows}
    for path, _, node in VALUES:
        default = yaml.safe_load(yaml.serialize(node))
        if default and isinstance(default, (dict, list)):
            continue  # in words
        assert written[path] == f"`{json.dumps(default)}`", path


def options(*folders):
    """What the sources of a program add to its command line."""
    sources = [source for folder in folders for source in sorted((REPO / folder).glob("*.cc"))]
    return set(re.findall(r'add_(?:option|flag)\(\s*"(--[a-z-]+)"', "".join(source.read_text() for source in sources)))


@pytest.fixture(scope="module")
def everything():
    return render(EVERYTHING)


def names(arguments):
    return {argument.split("=")[0] for argument in arguments}


def test_sluice_node_knows_its_options(everything):
    arguments = everything.node.args
    behind = arguments.index("--")
    assert names(arguments[:behind]) <= options("noderuntime/supervisor")
    assert names(arguments[behind + 1:]) <= options("noderuntime/daemon")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert names(everything.node.container[probe]["exec"]["command"][1:]) <= options("noderuntime/supervisor")


def test_sluice_device_plugin_knows_its_options(everything):
    known = options("deviceplugin/daemon")
    assert not AHEAD & known, "no longer ahead"
    assert names(everything.plugin.args) <= known | AHEAD


def test_every_option_has_a_value_or_a_reason():
    """An option that is added later gets a value here, or is among these."""
    validation = (CHART / "templates" / "validation.yaml").read_text()
    ours = {component: {f"--{name}" for name in re.search(rf'"{component}" "([a-z -]+)"', validation)[1].split()}
            for component in ("node", "devicePlugin")}
    # For extraArgs: to measure, for tests, for a launcher of its own.
    left = {"--version", "--context", "--credit", "--credit-us", "--oracle", "--poison", "--idle-exit", "--keeper",
            "--keeper-linger"}
    assert options("noderuntime/daemon") - ours["node"] <= left
    assert options("deviceplugin/daemon") - ours["devicePlugin"] <= {"--api-server", "--cgroups", "--check", "--describe-metrics", "--service-account", "--unseen"}


def test_the_version_is_that_of_the_programs():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r"project\(\s*\w+\s+VERSION\s+([0-9.]+)", (REPO / "CMakeLists.txt").read_text(), re.IGNORECASE)[1]
    assert chart["appVersion"] == version
