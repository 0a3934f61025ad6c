# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Another version of the chart is installed while a job runs, and Sluice is taken away under one."""

import re
import shlex
import shutil

import yaml

from support.documented import OPERATIONS, shell_lines
from support.images import REPOSITORY
from support.pods import as_job, losses, prober, trainer, values
from support.processes import until

ITERATIONS = 60
IMAGE = "docker.io/library/sluice"


def pods(kubectl, component):
    return kubectl.get("pods", "--namespace", "sluice", "--selector", f"app.kubernetes.io/component={component}")["items"]


def uids(kubectl, component):
    return [pod["metadata"]["uid"] for pod in pods(kubectl, component)]


def images(kubectl):
    """Which image the pods have, by component."""
    return {component: {container["image"] for pod in pods(kubectl, component) for container in pod["spec"]["containers"]}
            for component in ("node", "device-plugin")}


def replace_node_pod(kubectl):
    """As docs/operations/kubernetes.md says it."""
    lines = list(shell_lines(OPERATIONS / "kubernetes.md"))
    first = next(at for at, line in enumerate(lines) if line.startswith("kubectl drain"))
    (node,) = pods(kubectl, "node")
    words = {"NODE": node["spec"]["nodeName"], "POD": node["metadata"]["name"]}
    for line in lines[first:first + 4]:
        program, *arguments = [words.get(word, word) for word in shlex.split(line)]
        assert program == "kubectl", line
        kubectl.run(*arguments, seconds=180)
    assert lines[first + 3] == "kubectl uncordon NODE"


def test_running_jobs_do_not_notice(sluice, cluster, kubectl, work):
    def run(name):
        kubectl.apply(trainer(name, 12, "36Mi", iterations=ITERATIONS, seed=1))

    run("alone")
    kubectl.until_phase("alone", "Succeeded")
    alone = losses(kubectl.logs("alone"))
    kubectl.delete("pod", "alone")

    # The next version: its number, another image (of the same programs), and with these both pods anew.
    following = work / "following"
    shutil.copytree(REPOSITORY / "charts/sluice", following)
    about = yaml.safe_load((following / "Chart.yaml").read_text())
    version = about["appVersion"]
    about["version"] = about["appVersion"] = "99.0.0"
    (following / "Chart.yaml").write_text(yaml.safe_dump(about))
    cluster.name_image_again(f"{IMAGE}:{version}", f"{IMAGE}:99.0.0")
    node, plugin = uids(kubectl, "node"), uids(kubectl, "device-plugin")
    run("running")
    until("it trains", lambda: losses(kubectl.logs("running", check=False)))
    sluice.upgrade("--set", f"image.version={version}", chart=following)
    assert uids(kubectl, "node") == node, "it waits until somebody deletes it"
    assert uids(kubectl, "device-plugin") != plugin
    assert images(kubectl) == {"node": {f"sluice:{version}"}, "device-plugin": {"sluice:99.0.0"}}
    kubectl.until_phase("running", "Succeeded")
    assert losses(kubectl.logs("running")) == alone

    # The node's turn, while a job is there that begins elsewhere: here, when it has its pod again.
    kubectl.delete("pods", "--all")
    kubectl.apply(as_job(trainer("moves", 12, "36Mi", iterations=20 * ITERATIONS, seed=1)))
    until("it trains", lambda: losses(kubectl.logs("job/moves", check=False)))
    replace_node_pod(kubectl)
    assert uids(kubectl, "node") != node
    assert images(kubectl) == {"node": {"sluice:99.0.0"}, "device-plugin": {"sluice:99.0.0"}}
    until("it trains again", lambda: losses(kubectl.logs("job/moves", check=False))[:ITERATIONS] == alone, seconds=120)
    kubectl.delete("job", "moves", "--cascade=foreground")

    # And back, which is what a cluster of the version before this one goes through.
    sluice.upgrade()
    replace_node_pod(kubectl)
    assert images(kubectl) == {"node": {f"sluice:{version}"}, "device-plugin": {f"sluice:{version}"}}
    run("later")
    kubectl.until_phase("later", "Succeeded")
    assert losses(kubectl.logs("later")) == alone


def test_a_job_keeps_what_it_holds_when_the_node_pod_is_deleted_under_it(sluice, kubectl):
    kubectl.apply(prober("under", 12, "hold", "4"))
    until("it holds", lambda: "holding_mib" in values(kubectl.logs("under", check=False)))
    (node,) = pods(kubectl, "node")
    kubectl.delete("pod", node["metadata"]["name"], "--namespace", "sluice")
    # The memory is still the job's, and so nobody else begins.
    until("its successor has no room for its pool", lambda: re.search(r"pool: handle \d+ of 24 .* CUDA_ERROR_OUT_OF_MEMORY",
                                                                     sluice.logs("node")))
    assert uids(kubectl, "node") != [node["metadata"]["uid"]] and sluice.status_now() is None
    assert kubectl.pod("under")["status"]["phase"] == "Running"
    kubectl.let_go("under")
    kubectl.until_phase("under", "Succeeded", "Failed")
    assert values(kubectl.logs("under"))["further_mib"] == [0]
    until("it serves when the job has ended", sluice.status_now)


def test_a_job_keeps_what_it_holds_when_sluice_is_uninstalled(sluice, kubectl):
    kubectl.apply(prober("keeps", 12, "hold", "4"))
    until("it holds", lambda: "holding_mib" in values(kubectl.logs("keeps", check=False)))
    sluice.uninstall()
    try:
        # Helm waits for the daemon set, and not for its pods.
        until("no daemon is left", lambda: not uids(kubectl, "node"))
        assert kubectl.pod("keeps")["status"]["phase"] == "Running"
        kubectl.let_go("keeps")
        kubectl.until_phase("keeps", "Succeeded", "Failed")
        assert values(kubectl.logs("keeps"))["further_mib"] == [0]
    finally:
        sluice.install()
        sluice.until_offered(48)
