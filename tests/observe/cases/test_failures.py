# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Each alert's whole expression gives something when what it is for has happened to real programs. How long that must last, and
when it is over, is in dashboards/rules/tests."""

import pytest
from expressions import alerts

from bed.failing import FailingNode
from bed.failures import FAILURES
from bed.prometheus import Prometheus

ALERTS = alerts()
# What happens anyway on the node of all other cases (bed/history.py, test_rules.py).
ELSEWHERE = {"SluiceRefusals", "SluiceBypass"}
# What programs cannot be made to do from outside, at least not surely, and why.
NEVER_SEEN = {
    "SluicePoolFragmented": "bases of jobs would have to lie so that for long no run is left for a job whose bytes are there. Admission leaves each "
                            "limit room, so on a small pool it takes comings and goings in an order that placement does not repeat",
    "SluiceSumsDisagree": "the daemon's own figures would have to contradict each other: a defect in scheduler/ledger or scheduler/loans, "
                          "which tests/model and test_sums_agree_at_every_scrape look for",
}


class Seen:
    def __init__(self, prometheus):
        self.prometheus = prometheus
        self.names = set()

    def until(self, expression, seconds=60):
        return self.prometheus.until(expression, seconds=seconds)

    def __call__(self, name, seconds=60, **labels):
        def holds(found):
            return any(all(each["metric"].get(key) == value for key, value in labels.items()) for each in found)
        self.prometheus.until(ALERTS[name]["expr"], holds, seconds)
        self.names.add(name)


@pytest.fixture(scope="module")
def node(work):
    folder = work / "f"
    folder.mkdir()
    failing = FailingNode(folder)
    try:
        failing.up()
        yield failing
    finally:
        failing.down()


@pytest.fixture(scope="module")
def watcher(node):
    # A daemon that hangs keeps a scrape for two seconds.
    return Prometheus(node, {"sluice-node": (node.gateway_port, 3), "sluice-device-plugin": (node.plugin_port, 1)})


@pytest.mark.parametrize("cause", FAILURES, ids=lambda cause: cause.__name__)
def test_it_is_seen(node, watcher, cause):
    seen = Seen(watcher)
    cause(node, seen)
    assert FAILURES[cause] <= seen.names


def test_every_alert_is_seen_by_one_or_says_why_not():
    caused = set().union(*FAILURES.values())
    assert sorted(caused | ELSEWHERE | set(NEVER_SEEN)) == sorted(ALERTS)
    assert not set(NEVER_SEEN) & (caused | ELSEWHERE)
