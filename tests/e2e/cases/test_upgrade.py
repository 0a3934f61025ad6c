# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Another version of the chart is installed while a job runs."""

import shutil

import yaml

from support.images import REPOSITORY
from support.pods import losses, trainer
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
