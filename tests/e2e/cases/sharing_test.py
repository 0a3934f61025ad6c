# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Two unchanged jobs whose peaks do not fit together share one GPU."""

from support.pods import losses, trainer
from support.processes import until

GRANULES = 12  # 12 MiB each
LIMIT = "36Mi"  # of a pool of 48 MiB; a trainer's peak is 33 MiB


def run_alone(kubectl, name, seed):
    kubectl.apply(trainer(name, GRANULES, LIMIT, seed=seed))
    kubectl.until_phase(name, "Succeeded")
    text = kubectl.logs(name)
    kubectl.delete("pod", name)
    return losses(text)


def test_two_jobs_that_do_not_fit_together_finish_as_if_alone(sluice, kubectl):
    alone = [run_alone(kubectl, "alone", seed) for seed in (1, 2)]
    assert len(alone[0]) == 20 and alone[0] != alone[1]

    kubectl.apply(trainer("a", GRANULES, LIMIT, seed=1), trainer("b", GRANULES, LIMIT, seed=2))
    kubectl.until_phase("a", "Succeeded")
    kubectl.until_phase("b", "Succeeded")
    assert losses(kubectl.logs("a")) == alone[0]
    assert losses(kubectl.logs("b")) == alone[1]
