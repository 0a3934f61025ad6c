# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What an operator says and sees: limits of running pods, a node that is drained, a GPU that breaks, who passes Sluice by."""

import datetime
import json
import pathlib
import sys
import time

from support.chart import RESOURCE
from support.pods import container, pod, prober, values
from support.processes import until

OFFERED = 48


def holds(kubectl, name):
    kubectl.until_phase(name, "Running")
    until(f"{name} holds", lambda: "holding_mib" in values(kubectl.logs(name)))


def test_the_limit_of_a_running_pod_by_the_command_line(sluice, kubectl, plugin):
    kubectl.apply(prober("tuned", 8, "hold", "4"))
    holds(kubectl, "tuned")
    assert "limit 24.0 MiB" in plugin.run("sluice", "limit", "default/tuned", "24MiB").stdout
    until("granules are kept back for it", lambda: kubectl.allocatable(RESOURCE) == OFFERED - 16)
    for size, why in [("4MiB", "8.0 MiB (its request)"), ("640MiB", "48.0 MiB (the pool)")]:
        refused = plugin.run("sluice", "limit", "default/tuned", size, check=False)
        assert refused.returncode != 0 and why in refused.stderr, refused
    plugin.run("sluice", "limit", "default/tuned", "asked")
    until("they are offered again", lambda: kubectl.allocatable(RESOURCE) == OFFERED)
    plugin.run("sluice", "limit", "default/tuned", "24MiB")
    kubectl.let_go("tuned")
    kubectl.until_phase("tuned", "Succeeded")
    assert values(kubectl.logs("tuned"))["further_mib"] == [20]


def test_a_limit_falls_no_lower_than_what_is_held(sluice, kubectl, plugin):
    kubectl.apply(prober("lowered", 8, "hold", "20", annotations={"sluice.dev/memory-limit": "24Mi"}))
    holds(kubectl, "lowered")
    refused = plugin.run("sluice", "limit", "default/lowered", "10MiB", check=False)
    assert refused.returncode != 0 and "limit" in refused.stderr, refused
    assert "limit 22.0 MiB" in plugin.run("sluice", "limit", "default/lowered", "22MiB").stdout
    kubectl.let_go("lowered")
    kubectl.until_phase("lowered", "Succeeded")
    assert values(kubectl.logs("lowered"))["further_mib"] == [2]


def test_a_drained_node_goes_on_with_what_it_has_and_gets_nothing_new(sluice, kubectl, plugin):
    kubectl.apply(prober("stays", 8, "hold", "4"))
    holds(kubectl, "stays")
    assert "default/stays/train" in plugin.run("sluice", "status").stdout
    assert "drain on, " in plugin.run("sluice", "--all-nodes", "drain", "on").stdout
    try:
        until("nothing but what is in use is offered", lambda: kubectl.allocatable(RESOURCE) == 8)
        kubectl.apply(prober("comes", 8, "see"))
        until("the scheduler has found no room", lambda: any(
            reason == "FailedScheduling" for reason, _ in kubectl.events_of("comes")))
    finally:
        plugin.run("sluice", "--all-nodes", "drain", "off")
    kubectl.let_go("stays")
    kubectl.until_phase("stays", "Succeeded")
    kubectl.until_phase("comes", "Succeeded")


def test_a_budget_keeps_the_daemons_from_being_evicted(sluice, kubectl):
    def evict():
        (node,) = kubectl.get("pods", "--namespace", "sluice", "--selector", "app.kubernetes.io/component=node")["items"]
        about = {"name": node["metadata"]["name"], "namespace": "sluice"}
        path = f"/api/v1/namespaces/sluice/pods/{about['name']}/eviction?dryRun=All"
        return kubectl.run("create", "--raw", path, "-f", "-", check=False, text=json.dumps(
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}))

    assert evict().returncode == 0
    sluice.upgrade("--set", "podDisruptionBudget.enabled=true")
    try:
        until("an eviction is refused", lambda: "disruption budget" in evict().stderr)
    finally:
        sluice.upgrade()


def test_a_broken_gpu_is_offered_no_more_until_an_operator_says_so(sluice, gpus, kubectl):
    def restart_plugin():
        kubectl.run("delete", "pod", "--namespace", "sluice", "--selector", "app.kubernetes.io/component=device-plugin", "--wait")
        kubectl.run("rollout", "status", "--namespace", "sluice", "daemonset/sluice-device-plugin", "--timeout=120s")

    def said():
        events = kubectl.get("events", "--field-selector", "involvedObject.kind=Node,reason=SluiceGpuUnhealthy")["items"]
        return [event["message"] for event in events]

    kubectl.apply(prober("goes-on", 8, "hold", "4"))
    holds(kubectl, "goes-on")
    gpus.xid(79, gpu=1)
    sluice.until_offered(0)
    (message,) = until("the node has an event", said)
    assert "XID 79: it needs a reset" in message, message
    broken = pathlib.Path("/run/sluice/x") / message.split()[0]
    try:
        assert broken.exists(), message
        kubectl.let_go("goes-on")
        kubectl.until_phase("goes-on", "Succeeded")
        # A plugin that is new has not reset it: kubelet knows the GPU again, and it is broken.
        restart_plugin()
        until("the new plugin is there", lambda: f"{broken.name} is not offered" in sluice.logs("device-plugin"))
        assert kubectl.allocatable(RESOURCE) == 0
    finally:
        # As docs/operations/runbooks/SluiceGpuUnhealthy.md says, when somebody has reset it.
        broken.unlink(missing_ok=True)
        restart_plugin()
        sluice.until_offered(OFFERED)


def bypassed(kubectl, name):
    return kubectl.get("events", "--field-selector", f"involvedObject.name={name},reason=SluiceBypassed")["items"]


def began(kubectl, name):
    """When the container wrote its first line, which it does when it holds memory; in seconds since 1970."""
    written = kubectl.logs(name, "--timestamps").split()[0].rstrip("Z")
    whole, _, fraction = written.partition(".")
    moment = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
    return moment.timestamp() + float(f"0.{fraction or 0}")


def test_who_passes_sluice_by_is_found_within_two_seconds(sluice, kubectl):
    before = sluice.status()["bypassed"]["pods"]
    kubectl.apply(pod("passes", container(8, ["sh", "-c", "exec env -u LD_PRELOAD prober hold 4"])))
    events = until("the pod has an event", lambda: bypassed(kubectl, "passes"))
    seen = time.time()
    assert "uses the GPU past Sluice" in events[0]["message"], events
    took = seen - began(kubectl, "passes")
    print(f"\nfound and said {took:.2f} s after it held memory", file=sys.stderr)
    assert took < 2
    assert sluice.status()["bypassed"]["pods"] == before + 1
    assert f'of="pod"}} {before + 1}' in sluice.metrics()
    kubectl.let_go("passes")
    kubectl.until_phase("passes", "Succeeded")


def test_who_has_the_library_is_not_accused(sluice, kubectl):
    before = sluice.status()["bypassed"]
    kubectl.apply(prober("behaves", 8, "hold", "4"), prober("forks", 8, "fork"))
    holds(kubectl, "behaves")
    kubectl.until_phase("forks", "Succeeded", "Failed")
    kubectl.let_go("behaves")
    kubectl.until_phase("behaves", "Succeeded")
    assert sluice.status()["bypassed"] == before
    assert not bypassed(kubectl, "behaves")
