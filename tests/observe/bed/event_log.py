# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the figures of a daemon should be, from its event log: written from docs/design/runtime.md (section 5) and sharing
nothing with the daemon's own counting."""

import collections


# Who "holds" what is beyond a budget.
BEYOND_BUDGET = 0xFFFFFFFE
# Denied to another process than the one that may wait.
AT_THE_DOOR = ("second-process",)


def units_of(extents):
    return {unit for offset, length in extents for unit in range(offset, offset + length)}


class Times:
    def __init__(self):
        self.count = self.ns = 0

    def add(self, ns):
        self.count += 1
        self.ns += ns


class Replay:
    """By job how often what, by pair of jobs what was lent (bytes)."""

    def __init__(self, events):
        self.counts = collections.defaultdict(collections.Counter)
        self.waits = collections.defaultdict(collections.Counter)  # by reason
        self.refusals = collections.defaultdict(collections.Counter)
        self.deviations = collections.defaultdict(collections.Counter)
        self.evictions = collections.defaultdict(collections.Counter)
        self.lent = collections.Counter()  # by (lender, borrower)
        self.policy_switches = 0
        # How often, and together how many nanoseconds: by job, and of the whole GPU.
        self.gate_waits = collections.defaultdict(Times)
        self.lease_waits = collections.defaultdict(Times)
        self.handovers = Times()
        self.reclaims = Times()
        self._waits_since = {}
        self._claims = collections.Counter()
        self._released = {}  # (job, release): when
        self._died = {}
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
        elif kind == "mismatch":
            self.deviations[job][event["reason"]] += 1
        elif kind == "evict":
            self.evictions[job][event["reason"]] += 1
        if kind in ("trough", "mismatch", "evict", "death", "leave", "free"):
            self._given.pop(job, None)
        counts[kind] += 1
        self._claim(kind, job, event)
        self._time(kind, job, event)

    def _claim(self, kind, job, event):
        claim = event.get("claim", 0)
        if kind in ("grant", "claim"):
            self.counts[job]["raise"] += claim > self._claims[job]
            self._claims[job] = max(claim, self._claims[job])
        elif kind in ("gate", "bring-back", "restore", "leave", "death", "free"):
            self._claims[job] = claim

    def _time(self, kind, job, event):
        now = event["t_ns"]
        if kind == "wait":
            self._waits_since.setdefault(job, now)
        elif kind == "gate" or kind == "grant":
            waits = self.gate_waits if kind == "gate" or event.get("gate", 0) else self.lease_waits
            waits[job].add(now - self._waits_since.pop(job, now))
        elif kind == "deny" and job in self._waits_since and event["reason"] not in AT_THE_DOOR:
            # Who has no claim stands at gate 0.
            waits = self.gate_waits if event.get("gate", 0) or not self._claims[job] else self.lease_waits
            waits[job].add(now - self._waits_since.pop(job))
        elif kind == "release":
            self._released[job, event["release"]] = now
        elif kind == "fenced" and (job, event["release"]) in self._released:
            self.handovers.add(now - self._released.pop((job, event["release"])))
        elif kind == "death":
            self._died[job] = now
        elif kind == "free" and job in self._died:
            self.reclaims.add(now - self._died.pop(job))
        if kind in ("death", "free", "leave"):
            self._waits_since.pop(job, None)
        if kind in ("free", "leave"):
            self._released = {key: when for key, when in self._released.items() if key[0] != job}

    def _grant(self, job, units):
        for lender, given in self._given.items():
            if lender != job:
                self.lent[(lender, job)] += len(given & units) * self._unit
            given -= units
