# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the figures of a daemon should be, from its event log: written from docs/design/runtime.md (section 5) and sharing
nothing with the daemon's own counting."""

import collections


# Who "holds" what is beyond a budget.
BEYOND_BUDGET = 0xFFFFFFFE


def units_of(extents):
    return {unit for offset, length in extents for unit in range(offset, offset + length)}


class Replay:
    """By job how often what, by pair of jobs what was lent (bytes)."""

    def __init__(self, events):
        self.counts = collections.defaultdict(collections.Counter)
        self.waits = collections.defaultdict(collections.Counter)  # by reason
        self.refusals = collections.defaultdict(collections.Counter)
        self.lent = collections.Counter()  # by (lender, borrower)
        self.policy_switches = 0
        # What each job that is in an iteration with a profile gave up in it and nobody was given since.
        self._given = {}
        for event in events:
            self._take(event)

    def _take(self, event):
        kind, job = event["event"], event.get("job")
        if kind == "pool":
            self._unit = event["unit_bytes"]
        elif kind == "policy":
            self.policy_switches += 1
        if job in (None, BEYOND_BUDGET):
            return
        counts = self.counts[job]
        if kind in ("gate", "bring-back"):
            self._given.pop(job, None)
            if event.get("profiled"):
                self._given[job] = set()
        if kind in ("gate", "grant", "bring-back"):
            self._grant(job, units_of(event.get("extents", [])))
        elif kind == "release" and job in self._given:
            self._given[job] |= units_of(event["extents"])
        elif kind == "wait":
            self.waits[job][event["reason"]] += 1
        elif kind == "deny":
            self.refusals[job][event["reason"]] += 1
        if kind in ("trough", "mismatch", "evict", "death", "leave", "free"):
            self._given.pop(job, None)
        counts[kind] += 1

    def _grant(self, job, units):
        for lender, given in self._given.items():
            if lender != job:
                self.lent[(lender, job)] += len(given & units) * self._unit
            given -= units
