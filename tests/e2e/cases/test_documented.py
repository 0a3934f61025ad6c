# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Each command of docs/operations/kubernetes.md, live-page.md and the runbooks is run on the cluster, as it stands there but
for the names, and says what the page says it does."""

import json
import re
import shlex
import shutil
import urllib.request

import pytest

from support.documented import OPERATIONS, in_prose, shell_lines
from support.images import REPOSITORY
from support.pods import prober, values
from support.processes import until

KUBERNETES = OPERATIONS / "kubernetes.md"
LIVE_PAGE = OPERATIONS / "live-page.md"
RUNBOOKS = sorted((OPERATIONS / "runbooks").glob("*.md"))
# What other tests run, and which.
ELSEWHERE = {
    "scripts/image sluice.tar": "tests/e2e/run",
    "ctr -n k8s.io images import sluice.tar": "support/cluster.py",
    "helm install sluice charts/sluice --namespace sluice --create-namespace": "support/chart.py",
    "helm upgrade": "cases/test_upgrade.py",
    "helm uninstall sluice --namespace sluice": "cases/test_upgrade.py",
    "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data": "cases/test_upgrade.py",
    "kubectl -n sluice delete pod POD": "cases/test_upgrade.py",
    "kubectl uncordon NODE": "cases/test_upgrade.py",
    "kubectl sluice": "the commands behind it",
    "sluice page": "tests/integration/documented_test.py: on a workstation",
    "sluice run --verbose": "tests/integration/documented_test.py: on a workstation",
}
# Named without what they need: what is run for them.
COMPLETED = {"sluice check-log": "sluice check-log FILE", "sluice report": "sluice report FILE",
             "sluice simulate": "sluice simulate TRACE:8 TRACE:16 --gpu v100-32 --policy flow"}
TRACE = "data/traces/resnet50.trace"
# What they print: the first of these that is in the command.
SAYS = {
    "sluice report": r"every promise was kept",
    "sluice simulate": r"shared by +flow",
    "custom-columns": r"GRANULES\s+\S+ +\d+\s",
    "kubectl apply": r"created|configured|unchanged",
    "annotate": r"pod/documented annotated",
    "drain on": r"drain on, \d+ jobs are there",
    "drain off": r"drain off, \d+ jobs are there",
    "budget": r"budget ",
    "policy": r"policy (flow|auto|temporal)",
    "limit": r"limit (24\.0|8\.0) MiB",
    "explain": r"documented",
    "status --json": r'"name": ?"default/documented/train"',
    "rollout status": r"successfully rolled out",
    "wait --for": r"condition met",
    "sluice page": r"http://127\.0\.0\.1:9453/#token=",
    "sluice status": r"default/documented/train",
    "check-log": r"lent within iterations",
    "component=device-plugin": r"granules of 1\.0 MiB",
    "component=node": r"grant|job",
    "logs POD": r"job",
    "describe pod": r"Name: +\S+",
    "describe node": r"sluice\.dev/gpu-memory",
    # Of what may not have happened.
    "get events": r"LAST SEEN +TYPE +REASON|No resources found",
    "-n sluice get pods": r"sluice-node-\w+ .*Running",
    "status.phase=Failed": r"NAMESPACE +NAME|No resources found",
    "get pods": r"documented .*Running",
    "doctor": r"(?m)^(ok|warn|fail) +\w",
}


def documented():
    """(page, command) of all pages; one that several have is the first one's."""
    found = {}
    for page in (KUBERNETES, LIVE_PAGE):
        for command in [*shell_lines(page), *in_prose(page, ["kubectl", "helm"])]:
            found.setdefault(command, page.stem)
    for page in RUNBOOKS:
        for command in in_prose(page, ["kubectl", "sluice"]):
            found.setdefault(command, page.stem)
    return [pytest.param(command, id=f"{page}: {command}") for command, page in found.items()
            if command not in ELSEWHERE and "port-forward" not in command and not command.startswith("ssh ")]


@pytest.fixture(scope="module")
def held(sluice, cluster):
    """A job, for commands about one."""
    cluster.kubectl.apply(prober("documented", 8, "hold", "4"))
    cluster.kubectl.until_phase("documented", "Running")
    until("it holds", lambda: "holding_mib" in values(cluster.kubectl.logs("documented")))
    yield "documented"
    cluster.kubectl.delete("pods", "--all")


@pytest.fixture
def node(held, cluster):
    (pod,) = cluster.kubectl.get("pods", "--namespace", "sluice", "--selector", "app.kubernetes.io/component=node")["items"]
    return pod


def on_cluster(command, node):
    """The command for this cluster, as arguments of kubectl."""
    words = {"NAMESPACE/POD": "default/documented", "JOB": "default/documented", "NODE": node["spec"]["nodeName"],
             "NAME": "documented", "POD": node["metadata"]["name"], "pod/sluice-node-abcde": "pod/" + node["metadata"]["name"],
             "involvedObject.name=NAME": "involvedObject.name=documented", "40GiB": "24MiB", "SIZE": "24MiB",
             "sluice.dev/memory-limit=40Gi": "sluice.dev/memory-limit=24Mi",
             "manifests/examples/pod.yaml": str(REPOSITORY / "manifests/examples/pod.yaml")}
    program, *arguments = [words.get(word, word) for word in shlex.split(command)]
    if program == "kubectl":
        return arguments
    assert program == "sluice", command
    # A runbook's reader is on the node, where the daemon's container has the program.
    return ["exec", "-n", "sluice", node["metadata"]["name"], "-c", "node", "--", "sluice", *arguments]


def test_what_is_run_elsewhere_is_still_documented():
    in_runbooks = {command for page in RUNBOOKS for command in in_prose(page, ["sluice"])}
    assert set(ELSEWHERE) <= {*shell_lines(KUBERNETES), *in_prose(KUBERNETES, ["kubectl", "helm"]), *shell_lines(LIVE_PAGE), *in_runbooks}
    assert set(COMPLETED) <= in_runbooks


@pytest.mark.parametrize("command", documented())
def test_command(sluice, gpus, node, plugin, command):
    shutil.copy(REPOSITORY / TRACE, gpus.folder / "a.trace")
    command = COMPLETED.get(command, command)
    arguments = on_cluster(command.replace("FILE", f"{gpus.folder}/events.jsonl").replace("TRACE", f"{gpus.folder}/a.trace"), node)
    # No metrics of nodes and pods here: that it asks for them is what can be seen.
    lacks = "Metrics API not available" if re.match(r"kubectl .*\btop pod", command) else None
    try:
        done = plugin.run(*arguments, check=False)
        if lacks:
            assert lacks in done.stderr, done
            return
        # Of a container without the library on its own a doctor has something to say.
        assert done.returncode == 0 or "doctor" in command, done
        says = next(expected for part, expected in SAYS.items() if part in command)
        # kubectl says that there is nothing on the other stream.
        assert re.search(says, done.stdout + done.stderr), done
    finally:
        plugin.run("sluice", "--all-nodes", "drain", "off")
        plugin.run("sluice", "--all-nodes", "policy", "flow")
        plugin.run("sluice", "--all-nodes", "budget", "all")


def fetch(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        return answer.read().decode()


def test_the_live_page_of_a_node(sluice, gpus, node, plugin):
    """Both commands, as the page has them: the port is forwarded to the address behind it, and the token of the other one
    may change things."""
    commands = {command: remark for command, remark in shell_lines(LIVE_PAGE).items() if command.startswith("kubectl")}
    (forward,) = [command for command in commands if "port-forward" in command]
    (ask,) = [command for command in commands if "port-forward" not in command]
    url = re.fullmatch(r"then (http://127\.0\.0\.1:9453/)", commands[forward])[1]
    asked = re.search(r"(http://127\.0\.0\.1:9453/)#token=([0-9a-f]+)", plugin.run(*on_cluster(ask, node)).stdout)
    assert asked and asked[1] == url and commands[ask] == "with the token"
    with plugin.forward(*on_cluster(forward, node)) as said:
        assert "Forwarding from 127.0.0.1:9453 -> 9453" in said
        assert "<title>Sluice" in fetch(url)
        assert json.loads(fetch(url + "api/gpus"))["may_change"] is False
        known = json.loads(fetch(url + "api/gpus", **{"X-Sluice-Token": asked[2]}))
        assert known["may_change"] is True
        assert [gpu["gpu"] for gpu in known["gpus"]] == [0]
        with urllib.request.urlopen(url + "api/live?gpu=0", timeout=10) as events:
            start = next(line for line in events if line.startswith(b"data: "))
        assert "default/documented/train" in {job["name"] for job in json.loads(start[6:])["jobs"]}


def test_the_metrics_of_a_node_by_a_forwarded_port(sluice, node, plugin):
    (command,) = [command for page in RUNBOOKS for command in in_prose(page, ["kubectl"]) if "port-forward" in command]
    with plugin.forward(*on_cluster(command, node)):
        assert 'sluice_build_info{' in fetch("http://127.0.0.1:9452/metrics")
