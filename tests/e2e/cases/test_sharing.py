# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Jobs whose peaks do not fit together share one GPU."""

import json
import pathlib
import re

from support.gpu import MIB
from support.pods import container, losses, pod, prober, trainer, values
from support.processes import descendants_named, until

GRANULES = 12  # 12 MiB each
LIMIT = "36Mi"  # of a pool of 48 MiB; a trainer's peak is 33 MiB
ITERATIONS = 40
# A job lends where it has given something back while the other one lacks it. Of 12 pairs of 40 iterations each job had
# lent in 3; of 6 pairs of 120 or 200 in all.
ITERATIONS_TO_LEND = 200
MOST_GRANULES = 512  # of one GPU, where eight have 4096 together


def run_alone(kubectl, seed):
    kubectl.apply(trainer("alone", GRANULES, LIMIT, iterations=ITERATIONS_TO_LEND, seed=seed))
    kubectl.until_phase("alone", "Succeeded")
    text = kubectl.logs("alone")
    kubectl.delete("pod", "alone")
    return losses(text)


def test_two_jobs_that_do_not_fit_together_finish_as_if_alone(sluice, kubectl):
    alone = [run_alone(kubectl, seed) for seed in (1, 2)]
    assert len(alone[0]) == ITERATIONS_TO_LEND and alone[0] != alone[1]

    kubectl.apply(trainer("a", GRANULES, LIMIT, iterations=ITERATIONS_TO_LEND, seed=1),
                  trainer("b", GRANULES, LIMIT, iterations=ITERATIONS_TO_LEND, seed=2))

    def lent():
        jobs = {job["name"]: job["figures"]["lent_total_bytes"] for job in (sluice.status_now() or {"jobs": []})["jobs"]}
        return all(jobs.get(f"default/{name}/train", 0) > 0 for name in ("a", "b"))

    until("each has lent to the other", lent, every=0.05)
    kubectl.until_phase("a", "Succeeded")
    kubectl.until_phase("b", "Succeeded")
    assert losses(kubectl.logs("a")) == alone[0]
    assert losses(kubectl.logs("b")) == alone[1]

    kept, text = sluice.audit()
    assert kept, text
    within = re.search(r"lent within iterations: *([0-9.]+) ([KMG]?i?B)", text)
    assert within and float(within[1]) > 0, text


def test_each_container_sees_its_own_limit_as_the_gpus_memory(sluice, kubectl):
    kubectl.apply(prober("more", GRANULES, "see", annotations={"sluice.dev/memory-limit": LIMIT}),
                  prober("plain", GRANULES, "see"))
    for name, limit in (("more", 36), ("plain", GRANULES)):
        kubectl.until_phase(name, "Succeeded")
        assert values(kubectl.logs(name)) == {"driver_total": [limit * MIB], "nvml_total": [limit * MIB]}


def test_a_third_pod_that_does_not_fit_waits_and_runs_when_one_ends(sluice, kubectl):
    def run(name, iterations):
        kubectl.apply(trainer(name, GRANULES, LIMIT, iterations=iterations, seed=3))

    run("a", 3 * ITERATIONS)
    run("b", 100 * ITERATIONS)
    for name in ("a", "b"):
        until(f"{name} trains", lambda name=name: losses(kubectl.logs(name, check=False)))
    # Of 48 granules 24 are allocated. The others are kept back: one of the two may need as much beyond its own.
    sluice.until_offered(24)
    run("third", 5)
    until("the scheduler has found no room", lambda: any(
        reason == "FailedScheduling" for reason, _ in kubectl.events_of("third")))
    assert kubectl.pod("third")["status"]["phase"] == "Pending"
    assert kubectl.pod("a")["status"]["phase"] == "Running"
    kubectl.until_phase("a", "Succeeded")
    kubectl.until_phase("third", "Succeeded")
    assert len(losses(kubectl.logs("third"))) == 5
    assert kubectl.pod("b")["status"]["phase"] == "Running"


def resident_mib(name):
    """Of the program with this name."""
    (pid,) = descendants_named(name)
    status = pathlib.Path("/proc", str(pid), "status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


def test_a_pod_with_all_granules_of_a_large_gpu(sluice, gpus, kubectl, capsys):
    """Its status, into which kubelet writes each id, and what the plugin needs with everything on that the chart turns on."""
    before = resident_mib("sluice-device-plugin")
    with gpus.other(MOST_GRANULES * MIB + 16 * MIB) as environment:
        sluice.plugin_sees(environment)
        try:
            sluice.until_offered(MOST_GRANULES)
            kubectl.apply(pod("sized", container(MOST_GRANULES, ["sh", "-c", "true"])))
            kubectl.until_phase("sized", "Succeeded")
            size = len(json.dumps(kubectl.pod("sized")["status"], separators=(",", ":")))
            after = resident_mib("sluice-device-plugin")
        finally:
            kubectl.delete("pod", "sized")
            sluice.plugin_sees(gpus.environment)
            sluice.until_offered(48)
    with capsys.disabled():
        print(f"\nstatus of a pod with {MOST_GRANULES} granules: {size} bytes; the plugin has {before:.1f} MiB resident "
              f"with 48 granules, {after:.1f} with {MOST_GRANULES}")
    assert size < 64 * 1024
    assert max(before, after) <= 24
