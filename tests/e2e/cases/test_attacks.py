# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What a pod may try from inside to have more than it was given: nobody gets a lease above his grant, and nobody a handle of
another trust group."""

import pathlib

from support.pods import container, pod, prober, values
from support.processes import until

UNITS = 4  # of 256 KiB, in a granule


def holds(kubectl, name):
    kubectl.until_phase(name, "Running")
    until(f"{name} holds", lambda: "holding_mib" in values(kubectl.logs(name)))


def let_go(kubectl, name):
    """How much more it got."""
    kubectl.let_go(name)
    kubectl.until_phase(name, "Succeeded")
    return values(kubectl.logs(name))["further_mib"]


def test_an_environment_that_is_edited_gives_nothing_more(sluice, kubectl):
    edited = "SLUICE_LIMIT=40Mi SLUICE_REQUEST=40Mi SLUICE_MEMORY=40Mi NVIDIA_VISIBLE_DEVICES=all prober take"
    kubectl.apply(pod("edits", container(8, ["sh", "-c", edited])))
    kubectl.until_phase("edits", "Succeeded")
    assert values(kubectl.logs("edits"))["taken_mib"][0] <= 8


def test_a_process_that_is_executed_in_the_container_has_no_part_of_its_own(sluice, kubectl):
    kubectl.apply(prober("entered", 8, "hold", "4"))
    holds(kubectl, "entered")
    second = kubectl.run("exec", "entered", "--", "prober", "take", check=False)
    assert values(second.stdout)["taken_mib"] == [0]
    assert "one process of a job at a time" in second.stderr, second
    # An environment of its own, as a shell that somebody logs in to has, is a way past Sluice, and found (test_operators.py).
    assert let_go(kubectl, "entered") == [4]


def test_who_speaks_the_protocol_himself_gets_nothing_and_changes_nothing(sluice, kubectl):
    before = sluice.status()
    kubectl.apply(pod("speaks", container(8, ["sh", "-c", "intruder /run/sluice/sluice.sock; prober take"])))
    kubectl.until_phase("speaks", "Succeeded", "Failed")
    said = values(kubectl.logs("speaks"))
    for name in ("set_limit", "register", "set_policy", "drain", "set_budget", "status"):
        assert said[name] == ["close: a launcher's frame on a job's socket; it belongs on noded.sock"], said
    for name in ("garbage", "empty_header", "lease_without_session", "hello_of_no_gpu"):
        assert said[name][0].startswith("close: "), said
    assert 0 < said["taken_mib"][0] <= 8
    after = sluice.status()
    for key in ("policy", "draining", "budget_bytes", "pool_bytes"):
        assert after[key] == before[key]


def test_a_session_by_hand_has_its_grant_and_neither_a_second_connection_nor_a_child_more(sluice, kubectl):
    uuid = sluice.status()["gpu_uuid"]
    limit = 8 * UNITS
    kubectl.apply(pod("by-hand", container(8, ["intruder", "/run/sluice/sluice.sock", "session", uuid, str(limit)])))
    kubectl.until_phase("by-hand", "Succeeded", "Failed")
    said = {name: answers[0] for name, answers in values(kubectl.logs("by-hand")).items()}
    assert said["opened"] == "yes" and said["handles"] == 24, said
    assert said["above_limit"].startswith("deny: ") and "limit" in said["above_limit"], said
    assert said["limit"] == "grant", said
    assert said["one_more"].startswith("deny: "), said
    for name in ("second_connection", "child_connection"):
        assert said[name].startswith("close: one process of a job at a time"), said
    assert "speaks on the connection of process" in said["child_on_parents"], said


def test_a_copied_socket_is_nobodys(sluice, kubectl):
    copies = ("cp -a /run/sluice/sluice.sock /tmp/copy.sock; SLUICE_SOCKET=/tmp/copy.sock prober take; "
              "ln /run/sluice/sluice.sock /tmp/link.sock 2>&1; mv /run/sluice/sluice.sock /tmp/ 2>&1; true")
    kubectl.apply(pod("copies", container(8, ["sh", "-c", copies])))
    kubectl.until_phase("copies", "Succeeded")
    text = kubectl.logs("copies")
    assert values(text)["taken_mib"] == [0], text
    assert "cross-device link" in text and "Read-only file system" in text, text


def test_another_pods_folder_is_worth_nothing(sluice, kubectl):
    folders = pathlib.Path("/run/sluice/a")
    before = set(folders.iterdir())
    kubectl.apply(prober("victim", 8, "hold", "4"))
    holds(kubectl, "victim")
    (victims,) = set(folders.iterdir()) - before
    uuid = sluice.status()["gpu_uuid"]
    # Somebody who may mount folders of the node.
    socket = f"/grants/{victims.name}/sluice.sock"
    thief = container(8, ["sh", "-c", f"SLUICE_SOCKET={socket} prober take; intruder {socket} session {uuid} 1"])
    thief["volumeMounts"] = [{"name": "grants", "mountPath": "/grants"}]
    kubectl.apply(pod("thief", thief, volumes=[{"name": "grants", "hostPath": {"path": str(folders)}}]))
    kubectl.until_phase("thief", "Succeeded", "Failed")
    text = kubectl.logs("thief")
    said = values(text)
    assert said["taken_mib"] == [0] and said["handles"] == [0], text
    assert "this grant is pod " in said["opened"][0], text
    assert let_go(kubectl, "victim") == [4]


def test_pods_of_two_namespaces_are_never_in_one_pool(sluice, kubectl):
    kubectl.run("create", "namespace", "others")
    try:
        kubectl.apply(prober("ours", 8, "hold", "4"))
        until("it holds", lambda: "holding_mib" in values(kubectl.logs("ours", check=False)))
        kubectl.apply(prober("theirs", 8, "take", namespace="others"))
        text = until("theirs is told", lambda: [
            event["message"] for event in kubectl.get("events", "--namespace", "others")["items"]
            if event["reason"] == "SluiceRefused"])[-1]
        assert "group 'default'" in text and "group 'others'" in text, text
        logs = until("theirs has ended", lambda: kubectl.logs("theirs", "--namespace", "others", check=False))
        assert values(logs).get("taken_mib", [0]) == [0]
        kubectl.let_go("ours")
        kubectl.until_phase("ours", "Succeeded")
    finally:
        kubectl.run("delete", "namespace", "others", "--timeout=60s")


def test_pods_of_two_share_groups_are_never_in_one_pool(sluice, kubectl):
    kubectl.apply(prober("ours", 8, "hold", "4", annotations={"sluice.dev/share-group": "a"}))
    holds(kubectl, "ours")
    uuid = sluice.status()["gpu_uuid"]
    kubectl.apply(pod("theirs", container(8, ["intruder", "/run/sluice/sluice.sock", "session", uuid, "1"]),
                      annotations={"sluice.dev/share-group": "b"}))
    kubectl.until_phase("theirs", "Succeeded", "Failed")
    said = values(kubectl.logs("theirs"))
    assert said["handles"] == [0], said
    assert "group 'default/a'" in said["opened"][0] and "group 'default/b'" in said["opened"][0], said
    assert let_go(kubectl, "ours") == [4]
