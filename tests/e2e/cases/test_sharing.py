# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Jobs whose peaks do not fit together share one GPU."""

import json
import re

from support.gpu import MIB
from support.pods import losses, prober, trainer, values
from support.processes import until

GRANULES = 12  # 12 MiB each
LIMIT = "36Mi"  # of a pool of 48 MiB; a trainer's peak is 33 MiB
ITERATIONS = 40
MOST_GRANULES = 512  # of one GPU, where eight have 4096 together


def run_alone(kubectl, seed):
    kubectl.apply(trainer("alone", GRANULES, LIMIT, iterations=ITERATIONS, seed=seed))
    kubectl.until_phase("alone", "Succeeded")
    text = kubectl.logs("alone")
    kubectl.delete("pod", "alone")
    return losses(text)


def test_two_jobs_that_do_not_fit_together_finish_as_if_alone(sluice, kubectl):
    alone = [run_alone(kubectl, seed) for seed in (1, 2)]
    assert len(alone[0]) == ITERATIONS and alone[0] != alone[1]

    kubectl.apply(trainer("a", GRANULES, LIMIT, iterations=ITERATIONS, seed=1),
                  trainer("b", GRANULES, LIMIT, iterations=ITERATIONS, seed=2))
    kubectl.until_phase("a", "Succeeded")
    kubectl.until_phase("b", "Succeeded")
    assert losses(kubectl.logs("a")) == alone[0]
    assert losses(kubectl.logs("b")) == alone[1]

    kept, text = sluice.audit()
    assert kept, text
    lent = re.search(r"lent within iterations: *([0-9.]+) ([KMG]?i?B)", text)
    assert lent and float(lent[1]) > 0, text


def test_each_container_sees_its_own_limit_as_the_gpus_memory(sluice, kubectl):
    kubectl.apply(prober("more", GRANULES, "see", annotations={"sluice.dev/memory-limit": LIMIT}),
                  prober("plain", GRANULES, "see"))
    for name, limit in (("more", 36), ("plain", GRANULES)):
        kubectl.until_phase(name, "Succeeded")
        assert values(kubectl.logs(name)) == {"driver_total": [limit * MIB], "nvml_total": [limit * MIB]}


def test_a_third_pod_that_does_not_fit_waits_and_runs_when_one_ends(sluice, kubectl):
    limit = {"sluice.dev/memory-limit": LIMIT}
    kubectl.apply(prober("a", GRANULES, "hold", "4", annotations=limit), prober("b", GRANULES, "hold", "4", annotations=limit))
    kubectl.until_phase("a", "Running")
    kubectl.until_phase("b", "Running")
    # Of 48 granules 24 are allocated. The others are kept back: one of the two may need as much beyond its own.
    sluice.until_offered(24)
    kubectl.apply(prober("third", GRANULES, "take"))
    until("the scheduler has found no room", lambda: any(
        reason == "FailedScheduling" for reason, _ in kubectl.events_of("third")))
    assert kubectl.pod("third")["status"]["phase"] == "Pending"
    # Both: of two programs that do nothing, the second one waits to see what the first needs.
    for name in ("a", "b"):
        kubectl.run("exec", name, "--", "touch", "/tmp/go")
    kubectl.until_phase("third", "Succeeded")
    assert values(kubectl.logs("third"))["taken_mib"][0] > 0
    kubectl.until_phase("a", "Succeeded")
    kubectl.until_phase("b", "Succeeded")


def test_the_status_of_a_pod_is_small_however_many_granules_it_has(sluice, kubectl, capsys):
    sizes = {}
    for granules in (12, 48):
        kubectl.apply(prober("sized", granules, "see"))
        kubectl.until_phase("sized", "Succeeded")
        sizes[granules] = len(json.dumps(kubectl.pod("sized")["status"], separators=(",", ":")))
        kubectl.delete("pod", "sized")
        sluice.until_offered(48)
    # Kubelets that write the health of each id into it make it grow with them.
    of_each = max(0, sizes[48] - sizes[12]) / 36
    largest = sizes[12] + of_each * (MOST_GRANULES - 12)
    with capsys.disabled():
        print(f"\npod status: {sizes[12]} bytes with 12 granules, {sizes[48]} with 48; with {MOST_GRANULES} {largest:.0f}")
    assert largest < 64 * 1024
