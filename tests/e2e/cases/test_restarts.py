# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Kubelet, plugin, daemon and the job itself are killed in any order: no job is lost, and nobody's limit or ids change."""

import json
import os
import pathlib
import random
import signal

from support.chart import RESOURCE
from support.gpu import MIB
from support.pods import as_job, losses, trainer
from support.processes import descendants_named, until

KILLS = int(os.environ.get("SLUICE_E2E_KILLS", "10"))
SEED = int(os.environ.get("SLUICE_E2E_SEED", "1"))
ITERATIONS = 60


def kill(name):
    """The program on the node, whichever container it is in."""
    found = until(f"{name} runs", lambda: descendants_named(name))
    os.kill(found[0], signal.SIGKILL)


def kill_job():
    """Unless it has just ended by itself."""
    for pid in descendants_named("train")[:1]:
        os.kill(pid, signal.SIGKILL)


def ids_as_kubelet_has_them():
    file = pathlib.Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    return sorted(json.loads(file.read_text())["Data"]["RegisteredDevices"].get(RESOURCE, []))


def limits(sluice):
    return [job["limit_bytes"] for job in sluice.status()["jobs"] if job["name"].startswith("default/steady-")]


def test_any_order_of_kills_loses_no_job(sluice, cluster, kubectl):
    def run(name):
        kubectl.apply(as_job(trainer(name, 12, "36Mi", iterations=ITERATIONS, seed=1, restartPolicy="OnFailure")))

    def restart_kubelet():
        cluster.stop_kubelet(signal.SIGKILL)
        cluster.start_kubelet()

    run("alone")
    ended, _ = kubectl.until_complete("alone")
    alone = losses(kubectl.logs(ended["metadata"]["name"]))
    kubectl.delete("job", "alone", "--cascade=foreground")
    sluice.until_offered(48)

    deeds = [("daemon", lambda: kill("sluice-noded")), ("kubelet", restart_kubelet),
             ("plugin", lambda: kill("sluice-device-plugin")), ("job", kill_job)]
    ids = ids_as_kubelet_has_them()
    assert len(ids) == 48
    chance = random.Random(SEED)
    killed = 0
    while killed < KILLS:
        run("steady")
        until("it trains", lambda: losses(kubectl.logs("job/steady", check=False)))
        chosen = chance.sample(deeds, min(chance.randint(1, len(deeds)), KILLS - killed))
        for name, deed in chosen:
            killed += 1
            print(f"kill {killed}: {name}", flush=True)
            deed()
        ended, refused = kubectl.until_complete("steady", seconds=300)
        assert losses(kubectl.logs(ended["metadata"]["name"])) == alone
        # A kubelet that begins anew admits a pod whose program has just been killed before it knows of any plugin.
        assert [pod["status"]["reason"] for pod in refused] == ["UnexpectedAdmissionError"] * len(refused)
        assert not refused or {"job", "kubelet"} <= set(dict(chosen))
        print(f"{len(refused)} pods were refused", flush=True)
        restarts = ended["status"]["containerStatuses"][0]["restartCount"]
        print(f"{restarts} restarts of the program", flush=True)
        # Its end may have come before the signal. One that begins while the others are away is told so and ends.
        assert refused or restarts <= ("job" in dict(chosen))
        until("the daemon serves", sluice.serves)
        # Of a pod that is over, as long as its grant is there.
        assert set(limits(sluice)) <= {36 * MIB}
        assert len(limits(sluice)) <= 1
        kubectl.delete("job", "steady", "--cascade=foreground")
    until("everything is offered again", lambda: kubectl.allocatable(RESOURCE) == 48, seconds=180)
    until("kubelet has the same ids again", lambda: ids_as_kubelet_has_them() == ids)
    kept, text = sluice.audit()
    assert kept, text
