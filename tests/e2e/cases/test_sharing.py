# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Jobs whose peaks do not fit together share one GPU."""

import re

from support.gpu import MIB
from support.pods import losses, prober, trainer, values
from support.processes import until

GRANULES = 12  # 12 MiB each
LIMIT = "36Mi"  # of a pool of 48 MiB; a trainer's peak is 33 MiB
ITERATIONS = 40


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
