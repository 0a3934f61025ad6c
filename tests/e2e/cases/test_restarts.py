# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Kubelet, plugin and daemon are killed in any order under a job: it is not lost, and nobody's limit changes."""

import os
import random
import signal

from support.chart import RESOURCE
from support.pods import losses, trainer
from support.processes import descendants_named, until

KILLS = int(os.environ.get("SLUICE_E2E_KILLS", "10"))
SEED = int(os.environ.get("SLUICE_E2E_SEED", "1"))
ITERATIONS = 60


def kill(name):
    """The program on the node, whichever container it is in."""
    found = until(f"{name} runs", lambda: descendants_named(name))
    os.kill(found[0], signal.SIGKILL)


def test_any_order_of_kills_loses_no_job(sluice, cluster, kubectl):
    def run(name):
        kubectl.apply(trainer(name, 12, "36Mi", iterations=ITERATIONS, seed=1))

    def restart_kubelet():
        cluster.stop_kubelet(signal.SIGKILL)
        cluster.start_kubelet()

    run("alone")
    kubectl.until_phase("alone", "Succeeded")
    alone = losses(kubectl.logs("alone"))
    kubectl.delete("pod", "alone")
    sluice.until_offered(48)

    deeds = [("daemon", lambda: kill("sluice-noded")), ("kubelet", restart_kubelet),
             ("plugin", lambda: kill("sluice-device-plugin"))]
    chance = random.Random(SEED)
    for number in range(KILLS):
        run("steady")
        until("it trains", lambda: losses(kubectl.logs("steady", check=False)))
        for name, deed in chance.sample(deeds, chance.randint(1, len(deeds))):
            print(f"kill {number}: {name}", flush=True)
            deed()
        kubectl.until_phase("steady", "Succeeded", seconds=300)
        assert losses(kubectl.logs("steady")) == alone
        until("the daemon serves", sluice.serves)
        kubectl.delete("pod", "steady")
    until("everything is offered again", lambda: kubectl.allocatable(RESOURCE) == 48, seconds=180)
    kept, text = sluice.audit()
    assert kept, text
