# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Metrics as Prometheus gets them while jobs lend to each other: all there, well formed, and right."""

import gzip
import os
import random
import re
import subprocess
import time
import urllib.request

import pytest
from support.processes import until

from bed.event_log import Replay
from bed.node import MODELS, NODE, OWNERS, program
from bed.text import Scrape, scrape

SOAK = bool(os.environ.get("SLUICE_SOAK"))
SECONDS = 600 if SOAK else 60


def described(name):
    """{metric: kind} of a program's own page."""
    page = subprocess.run([program(name), "--describe-metrics"], capture_output=True, text=True, check=True, timeout=20).stdout
    found = re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert found
    return dict(found)


def outputs(sluice):
    return {"sluice-gateway": scrape(sluice.gateway_port), "sluice-device-plugin": scrape(sluice.plugin_port)}


def test_prometheus_has_both(prometheus):
    prometheus.until("up == 1", lambda found: {each["metric"]["job"] for each in found} == {"sluice-node", "sluice-device-plugin"})
    for target in prometheus.api("targets")["activeTargets"]:
        assert target["lastError"] == "", target


def test_labels_are_those_of_the_pods(prometheus):
    """What is joined with other exporters' series."""
    found = prometheus.until('sluice_job_held_bytes{namespace!=""}', lambda found: len(found) >= len(OWNERS))
    for each in found:
        labels = each["metric"]
        assert f"{labels['namespace']}/{labels['pod']}/{labels['container']}" in OWNERS
        assert (labels["node"], labels["gpu"]) == (NODE, "0")
        assert labels["UUID"].startswith("GPU-") and labels["id"].isdigit()


@pytest.mark.usefixtures("everything")
def test_promtool_finds_nothing(sluice):
    for name, text in outputs(sluice).items():
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 and not done.stdout and not done.stderr, f"{name}: {done.stdout}{done.stderr}"


def test_what_is_asked_for_zipped_is_the_same(gateway):
    """As Prometheus asks. Other values move on between the two."""
    request = urllib.request.Request(f"http://127.0.0.1:{gateway}/metrics", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        zipped = gzip.decompress(answer.read()).decode()
    pools = Scrape(zipped).of("sluice_pool_bytes")
    assert len(pools) == 2 and pools == Scrape(scrape(gateway)).of("sluice_pool_bytes")


@pytest.mark.usefixtures("everything")
def test_every_metric_of_the_page_is_in_prometheus(sluice, prometheus):
    """All that are described, as they are described, and no other ones."""
    for name, text in outputs(sluice).items():
        known = described(name)
        served = Scrape(text).types
        assert {family: kind for family, kind in served.items() if known.get(family) != kind} == {}
    wanted = {**described("sluice-gateway"), **described("sluice-device-plugin")}
    missing = [family for family, kind in wanted.items()
               if not prometheus(f"last_over_time({family}{'_count' if kind == 'histogram' else ''}[30m])")]
    assert missing == []


@pytest.mark.parametrize("expression", [
    # What each of the things that happened is counted as.
    'sum(sluice_job_lent_bytes_total) > 0',
    'sum(sluice_loans_total) > 0',
    'sum(sluice_job_gate_wait_seconds_count) > 0',
    'sum(sluice_job_waits_total{reason!=""}) > 0',
    'sum(sluice_handover_seconds_count) > 0',
    'sum(sluice_decision_seconds_count) > 0',
    'sum(sluice_lease_service_seconds_count) > 0',
    'sum(sluice_job_deviations_total{gpu="1"}) > 0',
    'sum(sluice_job_evictions_total{gpu="1"}) > 1',
    'sum(sluice_job_returns_total{gpu="1"}) > 1',
    'sum(sluice_job_refusals_total{gpu="1",reason="over-limit"}) > 0',
    'sum(sluice_reclaim_seconds_count{gpu="0"}) > 0',
    'sluice_bypassed_processes_total{gpu="0",of="other"} > 0',
    'sluice_policy_switches_total{gpu="0"} >= 2',
    'max_over_time(sluice_draining{gpu="1"}[10m]) == 1 and sluice_draining{gpu="1"} == 0',
    'sluice_plugin_allocations_total{result="granted"} >= 2',
    'sluice_plugin_allocations_total{result="refused"} >= 1',
    'sluice_plugin_registrations_total{result="ok"} >= 1',
    'sluice_plugin_registered == 1',
    'sluice_plugin_grants >= 2',
])
@pytest.mark.usefixtures("everything")
def test_what_happened_is_counted(prometheus, expression):
    """By the series of jobs that may be over for long, too."""
    prometheus.until(f"last_over_time(({expression})[30m:5s])", seconds=20)


def check_sums(text):
    """What adds up in one answer, on each GPU."""
    seen = Scrape(text)
    assert len(seen.of("sluice_pool_bytes")) == 2
    for labels, pool in seen.of("sluice_pool_bytes"):
        gpu = {"gpu": labels["gpu"]}
        held = seen.one("sluice_pool_held_bytes", **gpu)
        assert held == seen.sum("sluice_job_held_bytes", **gpu), gpu
        assert held + seen.one("sluice_pool_free_bytes", **gpu) + seen.one("sluice_pool_reserve_bytes", **gpu) == pool, gpu
        lent = seen.sum("sluice_loan_bytes", **gpu)
        assert seen.sum("sluice_job_lent_bytes", **gpu) == lent, gpu
        assert seen.sum("sluice_job_borrowed_bytes", **gpu) == lent, gpu
        assert seen.sum("sluice_loan_bytes_total", **gpu) - seen.sum("sluice_loan_returned_bytes_total", **gpu) == lent, gpu
        assert seen.one("sluice_pool_largest_free_bytes", **gpu) <= seen.one("sluice_pool_free_bytes", **gpu), gpu
        for job, most in seen.of("sluice_job_limit_bytes", **gpu):
            assert seen.sum("sluice_job_held_bytes", **gpu, id=job["id"]) <= most, job
    return seen


def rising(before, after):
    """Counters of a job never fall while it has series, but what is counted of its present process."""
    for name, kind in after.types.items():
        if kind != "counter" or name == "sluice_job_launches_total":
            continue
        old = {tuple(sorted(labels.items())): value for labels, value in before.samples.get(name, [])}
        for labels, value in after.samples.get(name, []):
            assert value >= old.get(tuple(sorted(labels.items())), 0), (name, labels)


class Disorder:
    """At random, from a seed that is said: budgets, policies, deaths and small jobs that come and go."""

    def __init__(self, sluice, seed):
        self.sluice = sluice
        self.random = random.Random(seed)
        self.folder = sluice.runtime / "0"
        self.jobs = 0

    def step(self):
        what = self.random.choice((self.budget, self.policy, self.death, self.newcomer, self.newcomer))
        what()

    def budget(self):
        size = self.random.choice(("all", self.sluice.least_budget))
        self.sluice.sluice("budget", size, "--runtime-dir", self.folder, check=False)

    def policy(self):
        name = self.random.choice(("flow", "temporal", "timeshift", "nodegroup"))
        self.sluice.sluice("policy", name, "--runtime-dir", self.folder)

    def death(self):
        self.sluice.kill_training(self.random.randrange(len(MODELS)))

    def newcomer(self):
        self.jobs += 1
        self.sluice.workload(f"newcomer-{self.jobs}", self.random.randrange(2), "--iterations", "30", "--blocks", "8",
                             "--block-bytes", self.random.choice(("32KiB", "64KiB")),
                             flags=("--limit", "1MiB", "--request", "512KiB"))


@pytest.mark.usefixtures("everything")
def test_sums_agree_at_every_scrape(sluice, prometheus, gateway):
    seed = int(os.environ.get("SLUICE_SEED", time.strftime("%Y%m%d")))
    disorder = Disorder(sluice, seed)
    began = time.monotonic()
    next_step = began
    scrapes = 0
    before = None
    while time.monotonic() < began + SECONDS:
        if time.monotonic() >= next_step:
            disorder.step()
            next_step = time.monotonic() + 2
        seen = check_sums(scrape(gateway))
        if before is not None:
            rising(before, seen)
        before = seen
        scrapes += 1
    print(f"seed {seed}: {scrapes} scrapes in {SECONDS} s")
    assert scrapes >= SECONDS
    sluice.sluice("budget", "all", "--runtime-dir", sluice.runtime / "0")
    sluice.sluice("policy", "flow", "--runtime-dir", sluice.runtime / "0")
    # And at those of Prometheus itself, of which each has one time for all its samples.
    on = "on (node, gpu, UUID)"
    for difference in (f"sluice_pool_held_bytes + {on} sluice_pool_free_bytes + {on} sluice_pool_reserve_bytes - {on} sluice_pool_bytes",
                       "sum by (gpu) (sluice_job_lent_bytes) - sum by (gpu) (sluice_job_borrowed_bytes)",
                       "sum by (gpu) (sluice_job_lent_bytes) - sum by (gpu) (sluice_loan_bytes)"):
        found = prometheus(f"max_over_time(abs({difference})[{SECONDS}s:1s])")
        assert len(found) == 2 or "loan" in difference, found
        assert [each for each in found if each["value"] != 0] == []


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("gpu", [0, 1])
def test_totals_are_those_of_the_event_log(sluice, gateway, gpu):
    """Counted again from what the daemon wrote, by code that shares nothing with it."""
    def both():
        """What was counted between two looks at a log that did not grow."""
        before = sluice.event_log(gpu).stat().st_size
        status, seen = sluice.status(gpu), Scrape(scrape(gateway))
        events = sluice.events(gpu)
        return (status, seen, events) if sluice.event_log(gpu).stat().st_size == before else None

    sluice.pause_trainings()
    try:
        status, seen, events = until("nothing happens for a moment", both, 60, 0.2)
    finally:
        sluice.resume_trainings()
    replay = Replay(events)
    on = {"gpu": str(gpu)}
    # Of those that ended only the latest ones have series.
    jobs = {int(labels["id"]) for labels, _ in seen.of("sluice_job_iterations_total", **on)}
    assert {job["id"] for job in status["jobs"]} <= jobs <= {job["id"] for job in status["jobs"] + status["ended"]}
    assert jobs and seen.one("sluice_policy_switches_total", **on) == replay.policy_switches
    for metric, kind in (("iterations", "trough"), ("returns", "bring-back"), ("claim_raises", "raise")):
        for job in jobs:
            assert seen.sum(f"sluice_job_{metric}_total", **on, id=str(job)) == replay.counts[job][kind], (metric, job)
    for metric, counted in (("waits", replay.waits), ("refusals", replay.refusals), ("deviations", replay.deviations),
                            ("evictions", replay.evictions)):
        for job in jobs:
            for reason in set(counted[job]) | {labels["reason"] for labels, _ in seen.of(f"sluice_job_{metric}_total", **on, id=str(job))}:
                assert seen.sum(f"sluice_job_{metric}_total", **on, id=str(job), reason=reason) == counted[job][reason], (metric, job, reason)
    def same_times(metric, times, **labels):
        assert seen.sum(f"sluice_{metric}_seconds_count", **on, **labels) == times.count, (metric, labels)
        assert seen.sum(f"sluice_{metric}_seconds_sum", **on, **labels) == pytest.approx(times.ns / 1e9, abs=1e-6), (metric, labels)

    same_times("handover", replay.handovers)
    same_times("reclaim", replay.reclaims)
    for job in jobs:
        same_times("job_gate_wait", replay.gate_waits[job], id=str(job))
        same_times("job_lease_wait", replay.lease_waits[job], id=str(job))
    assert replay.handovers.count > 0
    # What pairs lent that are long over has no series any more.
    over = status["figures"]["loans_over"]["lent_bytes"]
    assert seen.sum("sluice_loan_bytes_total", **on) + over == sum(replay.lent.values())
    for (lender, borrower), lent in replay.lent.items():
        if {lender, borrower} <= jobs:
            assert seen.sum("sluice_loan_bytes_total", **on, lender_id=str(lender), borrower_id=str(borrower)) == lent
    for job in jobs:
        # A job that is over for long is not among them any more, but what it lent is not forgotten.
        lent = sum(bytes for (lender, _), bytes in replay.lent.items() if lender == job)
        assert seen.one("sluice_job_lent_bytes_total", **on, id=str(job)) == lent
    if gpu == 0:
        assert sum(replay.lent.values()) > 0
