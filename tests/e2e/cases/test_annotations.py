# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What a pod's annotations say is kept or refused in words, never passed over."""

import re

import pytest

from support.chart import LIMITED
from support.pods import container, pod, prober, values
from support.processes import until

GRANULES = 8


@pytest.fixture(scope="module")
def limited(cluster):
    """A namespace with ceilings in the chart's values."""
    cluster.kubectl.run("create", "namespace", LIMITED)
    yield LIMITED
    cluster.kubectl.run("delete", "namespace", LIMITED, "--timeout=60s")


def refusal_of(kubectl, name):
    """The text of the warning on the pod."""
    def look():
        return [message for reason, message in kubectl.events_of(name) if reason == "SluiceRefused"]
    return until(f"pod {name} has a warning", look)[-1]


@pytest.mark.parametrize("field, value, allowed", [
    ("memory-limit", "36MB", "a whole number of bytes as Kubernetes writes quantities"),
    ("memory-limit", "1Mi", "from what was granted (8.0 MiB)"),
    ("memory-limit", "640Mi", "256.0 KiB (a lease unit) to 48.0 MiB (the pool)"),
    ("class", "fast", "guaranteed, burst"),
    ("priority", "high", "-1000 to 1000"),
    ("inject", "false", "allowed for a container that has all granules of a GPU (48.0 MiB, and this one has 8.0 MiB)"),
    ("inject", "no", "true, false"),
    ("host-memory", "640Mi", "up to 64.0 MiB, which all jobs of this GPU have together"),
    ("host-memory", "4 pages", "a whole number of bytes as Kubernetes writes quantities"),
    ("share-group", "Team A", "a DNS label"),
    ("memorylimit", "9Mi", "allowed keys"),
    ("container.trainer.priority", "1", "the pod has no container 'trainer'"),
])
def test_a_wrong_annotation_is_an_event_and_grants_nothing(sluice, kubectl, field, value, allowed):
    # A name of its own: events are found by it.
    name = re.sub("[^a-z0-9]+", "-", f"wrong-{field}-{value}".lower())
    kubectl.apply(prober(name, GRANULES, "take", annotations={f"sluice.dev/{field}": value}))
    kubectl.until_phase(name, "Succeeded", "Failed")
    text = refusal_of(kubectl, name)
    # What the plugin refuses is quoted as the pod has it; amounts that only the daemon can judge are its own words.
    amount = value.replace("Mi", ".0 MiB")
    said = re.fullmatch(rf"sluice\.dev/{re.escape(field)} (?:'{re.escape(value)}'|{re.escape(amount)}): (.*)", text, re.DOTALL)
    assert said and "allowed" in said[1] and allowed in said[1], text
    # The program got the same words and nothing else.
    logs = kubectl.logs(name)
    assert values(logs).get("taken_mib", [0]) == [0] and text in logs, logs


@pytest.mark.parametrize("field, value, allowed", [
    ("memory-limit", "24Mi", "sluice.dev/memory-limit 24.0 MiB: allowed: up to 20.0 MiB"),
    ("priority", "6", "sluice.dev/priority 6: allowed: up to 5"),
    ("share-group", "theirs", "sluice.dev/share-group 'theirs': allowed: none"),
])
def test_what_a_namespace_may_not_say_is_an_event_and_grants_nothing(sluice, limited, kubectl, field, value, allowed):
    name = f"above-{field}"
    kubectl.apply(prober(name, GRANULES, "take", namespace=limited, annotations={f"sluice.dev/{field}": value}))
    text = until("the pod has a warning", lambda: [
        event["message"] for event in kubectl.get("events", "--namespace", limited, "--field-selector",
                                                  f"involvedObject.name={name}")["items"]
        if event["reason"] == "SluiceRefused"])[-1]
    assert f"{allowed} for pods of namespace 'limited'" in text, text
    logs = until("it has ended", lambda: kubectl.logs(name, "--namespace", limited, check=False))
    assert values(logs).get("taken_mib", [0]) == [0]


@pytest.mark.parametrize("name, granules, field, allowed", [
    ("asks-for-nothing", 0, "memory-limit", "where a container of the pod asks for sluice.dev/gpu-memory"),
    ("idle-helper", GRANULES, "container.helper.memory-limit", "where container 'helper' asks for sluice.dev/gpu-memory"),
])
def test_an_annotation_for_who_asks_for_nothing_is_an_event(sluice, kubectl, name, granules, field, allowed):
    # Nothing is said of a pod that has ended.
    waits = ["sh", "-c", "until test -e /tmp/go; do sleep 0.1; done"]
    kubectl.apply(pod(name, container(granules, waits), container(0, waits, name="helper"), annotations={f"sluice.dev/{field}": "16Mi"}))
    assert refusal_of(kubectl, name) == f"sluice.dev/{field} '16Mi': allowed {allowed}"
    # It may have been said before they run.
    until("its containers run", lambda: [
        each.get("started") for each in kubectl.pod(name)["status"].get("containerStatuses", [])] == [True, True])
    for each in ("train", "helper"):
        kubectl.let_go(name, "-c", each)
    kubectl.until_phase(name, "Succeeded")


def test_a_good_annotation_is_no_event(sluice, kubectl):
    kubectl.apply(prober("good", GRANULES, "see", annotations={
        "sluice.dev/memory-limit": "16Mi", "sluice.dev/priority": "10", "sluice.dev/class": "burst",
        "sluice.dev/host-memory": "8Mi", "sluice.dev/inject": "true",
        "sluice.dev/container.train.memory-limit": "20Mi"}))
    kubectl.until_phase("good", "Succeeded")
    assert values(kubectl.logs("good"))["driver_total"] == [20 << 20]
    assert not [text for reason, text in kubectl.events_of("good") if reason == "SluiceRefused"]


def test_the_limit_of_a_running_pod_follows_its_annotation(sluice, kubectl):
    kubectl.apply(prober("grows", GRANULES, "hold", "4"))
    kubectl.until_phase("grows", "Running")
    until("it holds", lambda: "holding_mib" in values(kubectl.logs("grows")))
    kubectl.annotate("grows", **{"sluice.dev/memory-limit": "24Mi"})
    until("the daemon knows", lambda: any(
        job["name"] == "default/grows/train" and job["limit_bytes"] == 24 << 20 for job in sluice.status()["jobs"]))
    kubectl.let_go("grows")
    kubectl.until_phase("grows", "Succeeded")
    assert values(kubectl.logs("grows"))["further_mib"] == [20]


def test_a_limit_below_what_is_held_is_refused_and_the_old_one_stays(sluice, kubectl):
    kubectl.apply(prober("shrinks", GRANULES, "hold", "20", annotations={"sluice.dev/memory-limit": "24Mi"}))
    kubectl.until_phase("shrinks", "Running")
    until("it holds", lambda: "holding_mib" in values(kubectl.logs("shrinks")))
    kubectl.annotate("shrinks", **{"sluice.dev/memory-limit": "10Mi"})
    text = refusal_of(kubectl, "shrinks")
    assert re.fullmatch(r"sluice\.dev/memory-limit 10\.0 MiB: .* (?:holds|was promised|needs) .*", text), text
    (job,) = [job for job in sluice.status()["jobs"] if job["name"] == "default/shrinks/train"]
    assert job["limit_bytes"] == 24 << 20
    kubectl.let_go("shrinks")
    kubectl.until_phase("shrinks", "Succeeded")
    assert values(kubectl.logs("shrinks"))["further_mib"] == [4]
