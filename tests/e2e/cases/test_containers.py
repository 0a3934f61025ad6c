# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Pods of other shapes than one container that runs once."""

from support.images import MUSL
from support.pods import container, pod, prober, values
from support.processes import until


def container_logs(kubectl, name, part):
    return values(kubectl.logs(name, "-c", part))


def test_an_init_container_and_those_behind_it_have_a_grant_each(sluice, kubectl):
    kubectl.apply(pod("staged", container(12, ["prober", "see"], "main"),
                      init=[container(8, ["prober", "see"], "first")],
                      annotations={"sluice.dev/container.main.memory-limit": "16Mi"}))
    kubectl.until_phase("staged", "Succeeded")
    assert container_logs(kubectl, "staged", "first")["driver_total"] == [8 << 20]
    assert container_logs(kubectl, "staged", "main")["driver_total"] == [16 << 20]


def test_an_init_container_alone_is_known_by_its_pod(sluice, kubectl):
    kubectl.apply(pod("prepares", container(0, ["true"], "main"), init=[container(8, ["prober", "see"], "first")],
                      annotations={"sluice.dev/memory-limit": "16Mi"}))
    kubectl.until_phase("prepares", "Succeeded")
    assert container_logs(kubectl, "prepares", "first")["driver_total"] == [16 << 20]


def test_two_containers_of_a_pod_have_a_grant_each(sluice, kubectl):
    kubectl.apply(pod("both", container(8, ["prober", "see"], "one"), container(12, ["prober", "see"], "two")))
    kubectl.until_phase("both", "Succeeded")
    assert container_logs(kubectl, "both", "one")["driver_total"] == [8 << 20]
    assert container_logs(kubectl, "both", "two")["driver_total"] == [12 << 20]


def test_a_container_that_is_restarted_keeps_its_grant(sluice, kubectl):
    again = ["sh", "-c", "prober see && test -e /kept/once || { touch /kept/once; exit 1; }"]
    part = container(8, again)
    part["volumeMounts"] = [{"name": "kept", "mountPath": "/kept"}]
    kubectl.apply(pod("again", part, restartPolicy="OnFailure", volumes=[{"name": "kept", "emptyDir": {}}],
                      annotations={"sluice.dev/memory-limit": "10Mi"}))
    kubectl.until_phase("again", "Succeeded")
    assert kubectl.pod("again")["status"]["containerStatuses"][0]["restartCount"] == 1
    assert values(kubectl.logs("again"))["driver_total"] == [10 << 20]


def test_a_job_with_two_pods_at_a_time_runs_all(sluice, kubectl):
    template = prober("unnamed", 12, "take")
    kubectl.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "many"}, "spec": {
        "completions": 4, "parallelism": 2, "template": {"spec": template["spec"]}}})
    until("all of its pods have succeeded",
          lambda: (kubectl.get("job", "many")["status"].get("succeeded") or 0) == 4, seconds=120)


def test_processes_of_one_container_have_no_more_than_its_limit_together(sluice, kubectl):
    kubectl.apply(prober("crowd", 8, "crowd", "3"), prober("forks", 8, "fork"))
    for name in ("crowd", "forks"):
        pod_now = kubectl.until_phase(name, "Succeeded", "Failed")
        found = values(kubectl.logs(name))
        taken = [n for key in ("taken_mib", "parent_mib", "child_mib") for n in found.get(key, [])]
        assert taken and max(taken) <= 8, (found, pod_now["status"])


def test_a_container_sees_nothing_of_others(sluice, kubectl):
    kubectl.apply(prober("neighbour", 8, "hold", "1"))
    kubectl.until_phase("neighbour", "Running")
    kubectl.apply(pod("looks", container(8, ["sh", "-c", "ls -A /run/sluice; touch /run/sluice/x 2>&1; env | grep ^SLUICE_"])))
    kubectl.until_phase("looks", "Succeeded", "Failed")
    text = kubectl.logs("looks").splitlines()
    assert text[0] == "sluice.sock"
    assert "Read-only file system" in text[1]
    assert [line for line in text if line.startswith("SLUICE_")] and not any("limit" in line.lower() for line in text)


def test_a_program_of_another_c_library_runs_as_without_sluice(sluice, kubectl):
    part = container(8, ["/bin/says"])
    part["image"] = MUSL
    kubectl.apply(pod("musl", part))
    kubectl.until_phase("musl", "Succeeded")
    assert kubectl.logs("musl") == "fine\n"


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
        kubectl.run("exec", "ours", "--", "touch", "/tmp/go")
        kubectl.until_phase("ours", "Succeeded")
    finally:
        kubectl.run("delete", "namespace", "others", "--timeout=60s")


def test_an_environment_that_is_edited_gives_nothing_more(sluice, kubectl):
    edited = "SLUICE_LIMIT=40Mi SLUICE_REQUEST=40Mi SLUICE_MEMORY=40Mi NVIDIA_VISIBLE_DEVICES=all prober take"
    kubectl.apply(pod("edits", container(8, ["sh", "-c", edited])))
    kubectl.until_phase("edits", "Succeeded")
    assert values(kubectl.logs("edits"))["taken_mib"][0] <= 8
