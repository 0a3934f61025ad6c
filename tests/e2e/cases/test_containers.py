# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Pods of other shapes than one container that runs once."""

from support.images import MUSL
from support.pods import container, pod, prober, values
from support.processes import until


def container_logs(kubectl, name, part):
    return values(kubectl.logs(name, "-c", part))


def test_an_init_container_and_those_behind_it_have_a_grant_each(sluice, kubectl):
    # Fewer and more granules than those behind it: kubelet gives these the same ids, and lists them alone.
    for name, first, main in (("small-first", 2, 12), ("large-first", 12, 4)):
        kubectl.apply(pod(name, container(main, ["prober", "take"], "main"),
                          init=[container(first, ["prober", "take"], "first")],
                          annotations={"sluice.dev/container.first.memory-limit": f"{first + 1}Mi",
                                       "sluice.dev/container.main.memory-limit": f"{main + 4}Mi"}))
        kubectl.until_phase(name, "Succeeded")
        # Some of it is for what is not a block.
        assert first <= container_logs(kubectl, name, "first")["taken_mib"][0] <= first + 1
        assert main < container_logs(kubectl, name, "main")["taken_mib"][0] <= main + 4


def test_init_containers_that_ask_for_the_same_do_not_wait_for_each_other(sluice, kubectl):
    # The first one stays in its init container until the others have ended, long after the age at which a grant that
    # nobody knows of is over.
    wait = ["sh", "-c", "until test -e /tmp/go; do sleep 0.1; done; prober take"]
    limit = {"sluice.dev/memory-limit": "10Mi"}
    main = container(0, ["true"], "main")
    kubectl.apply(pod("waits", main, init=[container(8, wait, "first")], annotations=limit))
    until("it prepares", lambda: kubectl.run("exec", "waits", "-c", "first", "--", "true", check=False).returncode == 0)
    for name in ("next", "one-more"):
        kubectl.apply(pod(name, main, init=[container(8, ["prober", "take"], "first")], annotations=limit))
    for name in ("next", "one-more"):
        kubectl.until_phase(name, "Succeeded")
        assert 8 < container_logs(kubectl, name, "first")["taken_mib"][0] <= 10
    kubectl.run("exec", "waits", "-c", "first", "--", "sh", "-c", "sleep 5; touch /tmp/go")
    kubectl.until_phase("waits", "Succeeded")
    assert 8 < container_logs(kubectl, "waits", "first")["taken_mib"][0] <= 10


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
    # All of them keep what they have until each has asked, so that the sum is what the container had at one time.
    kubectl.apply(prober("crowd", 8, "crowd", "3"), prober("forks", 8, "fork"))
    for name, processes in (("crowd", 3), ("forks", 2)):
        pod_now = kubectl.until_phase(name, "Succeeded", "Failed")
        found = values(kubectl.logs(name))
        taken = [n for key in ("parent_mib", "child_mib") for n in found.get(key, [])]
        assert len(taken) + len(found.get("failed", [])) == processes, (found, pod_now["status"])
        assert 0 < sum(taken) <= 8, (found, pod_now["status"])


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


def test_a_sidecar_goes_on_beside_its_container_with_a_grant_of_its_own(sluice, kubectl):
    sidecar = {**container(8, ["prober", "hold", "2"], "beside"), "restartPolicy": "Always"}
    kubectl.apply(pod("escorted", container(12, ["prober", "see"], "main"), init=[sidecar],
                      annotations={"sluice.dev/container.beside.memory-limit": "10Mi"}))
    kubectl.until_phase("escorted", "Succeeded")
    assert container_logs(kubectl, "escorted", "main")["driver_total"] == [12 << 20]
    assert container_logs(kubectl, "escorted", "beside")["holding_mib"] == [2]


def test_a_request_that_fits_on_no_single_gpu_is_refused_in_words(sluice, gpus, kubectl):
    sluice.plugin_sees(gpus.all)
    try:
        sluice.until_offered(96)
        kubectl.apply(prober("wide", 60, "see"))
        status = kubectl.until_phase("wide", "Failed", "Succeeded")["status"]
        assert status["reason"] == "UnexpectedAdmissionError"
        events = [message for reason, message in kubectl.events_of("wide") if reason == "UnexpectedAdmissionError"]
        for text in (status["message"], *events):
            assert "60" in text and "single GPU" in text, text
        assert events
    finally:
        sluice.plugin_sees(gpus.environment)
        sluice.until_offered(48)


def test_a_program_without_the_library_has_the_whole_gpu_as_it_is(sluice, kubectl):
    kubectl.apply(pod("alone", container(48, ["sh", "-c", "prober see; prober take"]),
                      annotations={"sluice.dev/inject": "false"}))
    kubectl.until_phase("alone", "Succeeded")
    said = values(kubectl.logs("alone"))
    # The driver's figures and no limit: a GPU of 64 MiB, of which a context and one handle are not to be had.
    assert said["driver_total"] == said["nvml_total"] == [64 << 20]
    assert said["taken_mib"][0] > 48, said
    assert not [text for reason, text in kubectl.events_of("alone") if reason.startswith("Sluice")]
    kubectl.delete("pod", "alone")
    # And then it is everybody's again.
    sluice.until_offered(48)
    kubectl.apply(prober("after", 8, "take", restartPolicy="OnFailure"))
    kubectl.until_phase("after", "Succeeded")
    assert 0 < values(kubectl.logs("after"))["taken_mib"][0] <= 8
    until("the pool is there", lambda: sluice.serves() and sluice.status()["pool_bytes"] == 48 << 20)
