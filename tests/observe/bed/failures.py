# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the alerts are for, each caused on a node that may fail. `see(ALERT, LABEL=VALUE...)` waits until the alert's whole
expression gives something with these labels."""

import os
import signal
import time

from support.processes import until

from .node import BUILD


def plugin_fails(node, see):
    """Kubelet refuses it; then its grants cannot be written; then a GPU reports an error that lasts."""
    see("SluicePluginNotRegistered")
    assert node.kubelet.ask("refuse") == "ok"
    ids = node.kubelet.ask("devices").split()
    see.until("sluice_plugin_registered == 1")
    records = node.grants / "g"
    records.rename(node.grants / "elsewhere")
    records.write_text("no folder\n")
    assert node.kubelet.ask(f"allocate {ids[0]}").startswith("error")
    see("SluiceAllocationsFail")
    records.unlink()
    (node.grants / "elsewhere").rename(records)
    node.control("xid", node.work / "gpu", "79", "--gpu", "7")
    see("SluiceGpuUnhealthy", gpu="7")


def daemon_goes(node, see):
    """It is replaced again and again, takes nobody, and then there is none."""
    for _ in range(3):
        daemon = node.daemon(0)
        see.until('sluice_up{gpu="0"} == 1')
        daemon.stop()
        see.until('sluice_up{gpu="0"} == 0')
    daemon = node.daemon(0)
    see("SluiceDaemonRestarts", gpu="0")
    node.sluice("drain", "on", "--runtime-dir", node.runtime / "0")
    see("SluiceDrainedLong", gpu="0")
    daemon.stop(signal.SIGKILL)
    see("SluiceDaemonDown", gpu="0")


def reserve_fills(node, see):
    """Contexts are charged with more than they take: the memory beside the pool is used up by a single one."""
    node.daemon(1, "--context", "43MiB")
    job = node.holder("context", 1)
    see("SluiceOutsideReserveFull", gpu="1")
    job.end_input()


def stranger_comes(node, see):
    """A program without the library takes memory of the GPU."""
    node.daemon(2)
    process = node.stranger("stranger", 2, "--block-bytes", "8MiB")
    see("SluiceDrift", gpu="2")
    process.end_input()


def child_outlives_its_job(node, see):
    """Memory of a job that was killed is its child's, too, for six seconds. On the stranger's GPU."""
    see.until('sluice_reclaim_seconds_count{gpu="2"} == 0')
    job = node.workload("forks", 2, "--fork-at-launch", "20", "--iterations", "1000000", "--blocks", "8", "--block-bytes", "64KiB")
    until("it has forked", lambda: "forked" in job.log(), 60)
    os.kill(node.process_of("workload", 2), signal.SIGKILL)
    # The daemon counts from when it knows.
    until("it is dead", lambda: any(job["phase"] == "dying" for job in node.status(2)["jobs"]), 60)
    time.sleep(6)
    job.end_input()
    see("SluiceReclaimSlow", gpu="2")


def library_is_old(node, see):
    """One job's library speaks the version of the protocol before the other's. There, too."""
    old = node.job("old", 2, BUILD / "tests/observe_old_client", node.status(2)["gpu_uuid"], flags=("--limit", "512KiB"))
    until("it has a session", lambda: "ready" in old.log(), 60)
    young = node.holder("young", 2)
    see("SluiceProtocolOld", gpu="2")
    for job in (young, old):
        job.end_input()


def claims_are_left(node, see):
    """A job leaves its claim again and again. Then one does it once, and host memory, which is just enough for it, stays full."""
    node.daemon(3, "--host-memory", "3MiB")
    common = ("--blocks", "22", "--block-bytes", "128KiB", "--base-bytes", "128KiB", "--iterations", "60", "--until-eof")
    flags = ("--limit", "3840KiB", "--request", "256KiB")
    deviates = node.workload("deviates", 3, *common, "--grow-at", "40:512KiB", "--grow-every", "40", "--read-beside", flags=flags)
    conforms = node.workload("conforms", 3, *common, flags=flags)
    see("SluiceEvictionsRepeat", gpu="3", seconds=180)
    see("SluiceDeviations", gpu="3", seconds=180)
    deviates.end_input()
    assert deviates.wait() == 0, deviates.log()

    # Who is in host memory stays there as long as the other one, in its iteration, does not go on. So this one grows only when the
    # other one waits for what it has and is stopped: it does not go on either when it is given that.
    grows = node.workload("grows", 3, *common, "--grow-when-told", "512KiB", flags=flags)

    def jobs():
        """The one that grows, and the other."""
        alive = [job for job in node.status(3)["jobs"] if job["phase"] != "dying"]
        return [next((job for job in alive if ("--grow-when-told" in job["name"]) == it_grows), None) for it_grows in (True, False)]

    def is_measured(job):
        return job is not None and job["profile"] and job["phase"] in ("parked", "running")

    def is_stopped_while_it_waits():
        """In its iteration, and nothing is on its way that it could be given."""
        conforming = jobs()[1]["pid"]
        os.kill(conforming, signal.SIGSTOP)
        pair = jobs()
        if pair[1]["waiting"] and all(job["phase"] == "running" and job["unfenced_bytes"] == 0 for job in pair):
            return conforming
        os.kill(conforming, signal.SIGCONT)
        return None

    until("both are measured", lambda: all(map(is_measured, jobs())))
    grows.tell()
    until("it is at its peak", lambda: "grows when told" in grows.log())
    conforming = until("the other one waits for it", is_stopped_while_it_waits)
    grows.tell()
    see("SluiceHostTierFull", gpu="3")
    os.kill(conforming, signal.SIGCONT)
    for process in (grows, conforms):
        process.end_input()
    for process in (grows, conforms):
        assert process.wait() == 0, process.log()


def job_starves(node, see):
    """A job is not through with its first iteration; the daemon's clock is put forward while another one waits for that."""
    clock = node.daemon_with_clock(4)
    first = node.holder("first", 4)
    # Two of a name, which nobody lets wait for more than fifteen minutes: together it is more than four fifths of thirty.
    waiting = [node.workload("waits", 4, "--one-shot", flags=("--limit", "512KiB", "--request", "512KiB")) for _ in range(2)]
    see.until('count(sluice_job_waiting_seconds{gpu="4"}) == 2')
    clock.write_text("+400\n")
    see("SluiceJobStarves", gpu="4", reason="measurement")
    clock.write_text("+800\n")
    see.until('min(sluice_job_waiting_seconds{gpu="4"}) > 750')
    first.end_input()
    see("SluiceSharingCosts", gpu="4")
    for job in (first, *waiting):
        assert job.wait() == 0, job.log()


def decisions_are_slow(node, see):
    """A daemon for whose clock everything takes a thousand times as long."""
    clock = node.daemon_with_clock(5)
    job = node.workload("slow", 5, "--iterations", "200", "--until-eof", "--blocks", "8", "--block-bytes", "64KiB", flags=("--limit", "2MiB"))
    # Not before it has begun: for that it would have some milliseconds.
    until("it has a profile", lambda: any(each["profile"] for each in node.status(5)["jobs"]))
    clock.write_text("+0 x1000\n")
    see("SluiceDecisionsSlow", gpu="5")
    job.end_input()


def daemon_hangs(node, see):
    """The gateway does not answer; when it does again, a daemon does not that never did for it. When that goes on, it has no keeper."""
    node.gateway.send(signal.SIGSTOP)
    see("SluiceMetricsMissing", job="sluice-node")
    daemon = node.daemon(6, keeper="/bin/false")
    daemon.send(signal.SIGSTOP)
    node.gateway.send(signal.SIGCONT)
    see("SluiceDaemonSlow", gpu="6")
    see("SluiceDaemonStopped", gpu="6")
    see("SluiceDaemonDown", gpu="6")
    daemon.send(signal.SIGCONT)
    see("SluiceKeeperMissing", gpu="6")


# In the order in which they are caused, with the alerts that see them.
FAILURES = {
    plugin_fails: {"SluicePluginNotRegistered", "SluiceAllocationsFail", "SluiceGpuUnhealthy"},
    daemon_goes: {"SluiceDaemonRestarts", "SluiceDrainedLong", "SluiceDaemonDown"},
    reserve_fills: {"SluiceOutsideReserveFull"},
    stranger_comes: {"SluiceDrift"},
    child_outlives_its_job: {"SluiceReclaimSlow"},
    library_is_old: {"SluiceProtocolOld"},
    claims_are_left: {"SluiceEvictionsRepeat", "SluiceDeviations", "SluiceHostTierFull"},
    job_starves: {"SluiceJobStarves", "SluiceSharingCosts"},
    decisions_are_slow: {"SluiceDecisionsSlow"},
    daemon_hangs: {"SluiceDaemonSlow", "SluiceMetricsMissing", "SluiceDaemonStopped", "SluiceKeeperMissing"},
}
