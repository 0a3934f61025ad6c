# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Another version of the chart is installed while a job runs, and Sluice is taken away under one."""

import shutil

import yaml

from support.images import REPOSITORY
from support.pods import losses, prober, trainer, values
from support.processes import until

ITERATIONS = 60


def uids(kubectl, component):
    pods = kubectl.get("pods", "--namespace", "sluice", "--selector", f"app.kubernetes.io/component={component}")
    return [pod["metadata"]["uid"] for pod in pods["items"]]


def test_running_jobs_do_not_notice(sluice, kubectl, work):
    def run(name):
        kubectl.apply(trainer(name, 12, "36Mi", iterations=ITERATIONS, seed=1))

    run("alone")
    kubectl.until_phase("alone", "Succeeded")
    alone = losses(kubectl.logs("alone"))
    kubectl.delete("pod", "alone")

    # The next version: its number, and a value that makes the plugin's pod anew.
    following = work / "following"
    shutil.copytree(REPOSITORY / "charts/sluice", following)
    about = yaml.safe_load((following / "Chart.yaml").read_text())
    about["version"] = "99.0.0"
    (following / "Chart.yaml").write_text(yaml.safe_dump(about))
    node, plugin = uids(kubectl, "node"), uids(kubectl, "device-plugin")
    run("running")
    until("it trains", lambda: losses(kubectl.logs("running", check=False)))
    sluice.upgrade("--set", "devicePlugin.probation=601", chart=following)
    assert uids(kubectl, "node") == node, "it waits until somebody deletes it"
    assert uids(kubectl, "device-plugin") != plugin
    kubectl.until_phase("running", "Succeeded")
    assert losses(kubectl.logs("running")) == alone
    # And back, which is what a cluster of the version before this one goes through.
    sluice.upgrade()
    run("later")
    kubectl.until_phase("later", "Succeeded")
    assert losses(kubectl.logs("later")) == alone


def test_a_job_keeps_what_it_holds_when_sluice_is_uninstalled(sluice, kubectl):
    kubectl.apply(prober("keeps", 12, "hold", "4"))
    until("it holds", lambda: "holding_mib" in values(kubectl.logs("keeps", check=False)))
    sluice.uninstall()
    try:
        assert kubectl.pod("keeps")["status"]["phase"] == "Running"
        kubectl.run("exec", "keeps", "--", "touch", "/tmp/go")
        kubectl.until_phase("keeps", "Succeeded", "Failed")
        assert values(kubectl.logs("keeps"))["further_mib"] == [0]
    finally:
        sluice.install()
        sluice.until_offered(48)
