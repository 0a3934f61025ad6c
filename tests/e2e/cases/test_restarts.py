# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Two jobs that lend to each other, while kubelet, plugin, daemon and the jobs themselves are killed in any order: no job
is lost, nobody's limit is lost, doubled or another, and ids stay."""

import functools
import json
import os
import pathlib
import random
import re
import signal
import time

from support.chart import RESOURCE
from support.gpu import MIB
from support.pods import as_job, losses, trainer
from support.processes import descendants_named, until

KILLS = int(os.environ.get("SLUICE_E2E_KILLS", "10"))
SEED = int(os.environ.get("SLUICE_E2E_SEED", "1"))
# Long enough for several kills, and for a job that begins anew.
ITERATIONS = 120
# Of a pool of 48 MiB. Each needs 33 MiB at its peak and has 12 of its own, so each iteration borrows.
LIMIT = 36 * MIB
JOBS = {"steady-a": 1, "steady-b": 2}  # by seed
GRANTS = pathlib.Path("/run/sluice")
# In which a grant has a folder or a file, beside its record in g.
GRANT_FOLDERS = "abefgltru"


def kill(name, *words, is_over=lambda: False):
    """The program on the node, whichever container it is in; nobody where it is over."""
    found = until(f"{name} runs", lambda: descendants_named(name, *words) or is_over())
    if found is not True:
        os.kill(found[0], signal.SIGKILL)


def ids_as_kubelet_has_them():
    file = pathlib.Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    return sorted(json.loads(file.read_text())["Data"]["RegisteredDevices"].get(RESOURCE, []))


def make_grants_old():
    """As if all containers had begun an hour ago: what is collected late would be collected now."""
    for record in (GRANTS / "g").iterdir():
        other = GRANTS / "older"
        text, times = re.subn(r"(?<=created_ns = )\d+", lambda ns: str(int(ns[0]) - 3600 * 10**9), record.read_text())
        assert times == 1, text
        other.write_text(text)
        other.chmod(0o600)
        other.rename(record)


def make_leftovers_old():
    """As if what is there in the name of a grant without a record had been there for an hour: it is swept now."""
    kept = {record.name for record in (GRANTS / "g").iterdir()}
    hour_ago = time.time() - 3600
    for folder in GRANT_FOLDERS:
        for trace in (GRANTS / folder).iterdir():
            if trace.name.removesuffix(".new") in kept:
                continue
            try:
                os.utime(trace, (hour_ago, hour_ago))
            except FileNotFoundError:
                pass  # it has just gone


def without_a_record():
    """What is there in the name of grants that are none."""
    found = [trace for folder in GRANT_FOLDERS for trace in (GRANTS / folder).iterdir()]
    # Looked at behind the folders: a grant's record comes after its folder.
    kept = {record.name for record in (GRANTS / "g").iterdir()}
    return sorted(str(trace) for trace in found if trace.name.removesuffix(".new") not in kept)


class Pair:
    """The two jobs of one round, as the daemon sees them."""

    def __init__(self, sluice, kubectl):
        self._sluice = sluice
        self._kubectl = kubectl
        kubectl.apply(*(as_job(trainer(name, 12, "36Mi", iterations=ITERATIONS, seed=seed, restartPolicy="OnFailure"))
                        for name, seed in JOBS.items()))

    def train(self):
        """Waits until each of the two has its limit and has ended an iteration since, and they have lent to each other.
        False: one of them is over before."""
        first = {}

        def look():
            status = self._sluice.status_now()
            if status is None:
                return None
            jobs = [job for job in status["jobs"] if job["name"].startswith("default/steady-")]
            assert len({job["name"] for job in jobs}) == len(jobs), jobs
            assert {job["limit_bytes"] for job in jobs} <= {LIMIT}, jobs
            if sorted(job["name"].split("/")[1].rpartition("-")[0] for job in jobs) != sorted(JOBS):
                return "over" if any(self.is_over(name) for name in JOBS) else None
            moved = []
            for job in jobs:
                at = (status["started_unix_ms"], job["id"])
                done = job["figures"]["iterations"]
                moved.append(done > first.setdefault(at, done))
            lent = sum(job["figures"]["lent_total_bytes"] for job in jobs)
            return "train" if all(moved) and lent > 0 else None

        return until("both jobs train and lend", look, seconds=120) == "train"

    def is_over(self, name):
        return self._kubectl.get("job", name)["status"].get("succeeded", 0) > 0

    def end(self, alone, killed):
        """Waits until both have ended, as if alone; `killed`: what was. What became of them, in words."""
        became = []
        for name, seed in JOBS.items():
            ended, refused = self._kubectl.until_complete(name, seconds=300)
            assert losses(self._kubectl.logs(ended["metadata"]["name"])) == alone[seed]
            # A kubelet that begins anew admits a pod whose program has just been killed before it knows of any plugin.
            assert [pod["status"]["reason"] for pod in refused] == ["UnexpectedAdmissionError"] * len(refused)
            assert not refused or {name, "kubelet"} <= set(killed)
            restarts = ended["status"]["containerStatuses"][0]["restartCount"]
            became.append(f"{name} began anew {restarts} times, {len(refused)} pods of it were refused")
            # One that begins while the others are away is told so and ends.
            assert refused or restarts <= killed.count(name)
        self._kubectl.delete("jobs", *JOBS, "--cascade=foreground")
        return "; ".join(became)


def test_any_order_of_kills_loses_no_job(sluice, cluster, gpus, kubectl):
    def restart_kubelet():
        cluster.stop_kubelet(signal.SIGKILL)
        cluster.start_kubelet()

    def kill_job(name, seed):
        kill("train", "--seed", str(seed), is_over=lambda: pair.is_over(name))

    alone = {seed: losses(gpus.train_without_sluice(ITERATIONS, seed)) for seed in JOBS.values()}
    assert all(len(lines) == ITERATIONS for lines in alone.values())
    deeds = [("daemon", lambda: kill("sluice-noded")), ("kubelet", restart_kubelet),
             ("plugin", lambda: kill("sluice-device-plugin")),
             # One that has ended meanwhile was not killed: its pair trains no more, and that does not count.
             *((name, functools.partial(kill_job, name, seed)) for name, seed in JOBS.items())]
    ids = ids_as_kubelet_has_them()
    assert len(ids) == 48
    chance = random.Random(SEED)
    begun = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begun:.0f} s: {text}", flush=True)

    count = 0
    while count < KILLS:
        pair = Pair(sluice, kubectl)
        killed = []
        # A second death of one program would only show how long kubelet waits before it begins it again.
        for name, deed in chance.sample(deeds, min(len(deeds), KILLS - count)):
            if not pair.train():
                break
            make_grants_old()
            killed.append(name)
            say(f"kill {count + 1}: {name}")
            deed()
            # Whether both have theirs, and go on. Else the kill was too late, and does not count.
            if not pair.train():
                break
            count += 1
        say(pair.end(alone, killed))
        until("everything is offered again", lambda: kubectl.allocatable(RESOURCE) == 48, seconds=180)
        until("kubelet has the same ids again", lambda: ids_as_kubelet_has_them() == ids)
        say("all is offered again")
    make_leftovers_old()
    # The plugin looks every minute.
    until("nothing is left of grants without a record", lambda: not without_a_record(), seconds=180)
    kept, text = sluice.audit()
    assert kept, text
