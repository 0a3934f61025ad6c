# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Each command of docs/operations/kubernetes.md is run, as it stands there but for the names."""

import re
import shlex

import pytest

from support.images import REPOSITORY
from support.pods import prober, values
from support.processes import until

PAGE = (REPOSITORY / "docs/operations/kubernetes.md").read_text()
# What other parts of these tests run, and which.
ELSEWHERE = {
    "scripts/image sluice.tar": "tests/e2e/run",
    "ctr -n k8s.io images import sluice.tar": "support/cluster.py",
    "helm install sluice charts/sluice --namespace sluice --create-namespace": "support/chart.py",
    "helm upgrade": "cases/test_upgrade.py",
    "helm uninstall sluice --namespace sluice": "cases/test_upgrade.py",
    "kubectl sluice": "the commands behind it",
}


def documented():
    """The lines of the page's shell blocks, and what stands in its text as code and begins with a program."""
    lines = [line.split("  #")[0].strip() for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
             for line in block.splitlines()]
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    lines += re.findall(r"`((?:kubectl|helm) [^`]+)`", prose)
    return list(dict.fromkeys(line for line in lines if line))


def test_what_is_run_elsewhere_is_still_documented():
    assert set(ELSEWHERE) <= set(documented())


@pytest.mark.parametrize("command", [line for line in documented() if line not in ELSEWHERE])
def test_command(sluice, kubectl, plugin, command):
    kubectl.apply(prober("documented", 8, "hold", "4"))
    kubectl.until_phase("documented", "Running")
    until("it holds", lambda: "holding_mib" in values(kubectl.logs("documented")))
    node = kubectl.get("pods", "--namespace", "sluice", "--selector", "app.kubernetes.io/component=node")["items"][0]
    words = {"NAMESPACE/POD": "default/documented", "NODE": node["spec"]["nodeName"], "NAME": "documented",
             "POD": node["metadata"]["name"], "involvedObject.name=NAME": "involvedObject.name=documented",
             "40GiB": "24MiB", "sluice.dev/memory-limit=40Gi": "sluice.dev/memory-limit=24Mi",
             "manifests/examples/pod.yaml": str(REPOSITORY / "manifests/examples/pod.yaml")}
    program, *arguments = [words.get(word, word) for word in shlex.split(command)]
    assert program == "kubectl", command
    try:
        plugin.run(*arguments)
    finally:
        plugin.run("sluice", "--all-nodes", "drain", "off")
