# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What does not happen by itself while two trainings share a GPU."""

from support.processes import until

from .node import BUILD


def evict(node, _prometheus):
    """A job leaves its profile beside one that does not, goes to host memory and comes back, twice (as tests/integration/evict_test)."""
    common = ("--blocks", "22", "--block-bytes", "128KiB", "--base-bytes", "128KiB", "--iterations", "60", "--until-eof")
    flags = ("--limit", "3840KiB", "--request", "256KiB")
    pair = [node.workload("deviates", 1, *common, "--grow-at", "40:512KiB", "--grow-every", "40", "--read-beside", flags=flags),
            node.workload("conforms", 1, *common, flags=flags)]
    until("a job went to host memory and came back, twice",
          lambda: sum(event["event"] == "bring-back" for event in node.events(1)) >= 2, 120, 0.5)
    for process in pair:
        process.end_input()
    for process in pair:
        assert process.wait() == 0, process.log()


def refuse(node, _prometheus):
    """A job wants more than its limit, once with leave to go on and once without."""
    first = node.workload("over-limit", 1, "--over-limit", "3MiB", "--one-shot", "--block-bytes", "64KiB", flags=("--limit", "2MiB"))
    assert first.wait() == 0, first.log()


def kill(node, _prometheus):
    """A training dies where it stands."""
    return node.kill_training(0)


def pass_by(node, _prometheus):
    """A program uses the GPU without the library, for longer than two looks at it."""
    before = node.status(0)["bypassed"]["others"]
    process = node.start("passes-by", BUILD / "tests/programs/workload", "--no-memory", "--hold")
    until("it is seen", lambda: node.status(0)["bypassed"]["others"] > before, 60, 0.5)
    process.end_input()
    assert process.wait() == 0, process.log()


def switch(node, _prometheus):
    """Another policy decides for a while, and less of the pool is lent."""
    folder = node.runtime / "0"
    node.sluice("policy", "temporal", "--runtime-dir", folder)
    node.sluice("policy", "flow", "--runtime-dir", folder)

    def is_less():
        """A budget that does not come about is given up after 30 s, with a reason; then it is asked for again."""
        status = node.status(0)
        if status["wanted_budget_bytes"] != node.least_budget:
            node.sluice("budget", node.least_budget, "--runtime-dir", folder, check=False)
        return status["budget_bytes"] == node.least_budget

    until("less is lent", is_less, 120, 0.2)
    node.sluice("budget", "all", "--runtime-dir", folder)


def drain(node, prometheus):
    """GPU 1 takes nobody, and then again."""
    folder = node.runtime / "1"
    node.sluice("drain", "on", "--runtime-dir", folder)
    refused = node.workload("drained", 1, "--one-shot")
    assert refused.wait() != 0
    prometheus.until('sluice_draining{gpu="1"} == 1')
    node.sluice("drain", "off", "--runtime-dir", folder)


def misallocate(node, _prometheus):
    """Kubelet wants what is on no single GPU."""
    assert node.kubelet.ask("allocate nobody-1").startswith("error")


def make_everything_happen(node, prometheus):
    """{what: the ids it concerns}."""
    prometheus.until('sum(sluice_job_lent_bytes_total) > 0', seconds=120)
    done = {each.__name__: each(node, prometheus) for each in (evict, refuse, kill, pass_by, switch, drain, misallocate)}
    # What happened last is seen, too.
    prometheus.until('sluice_plugin_allocations_total{result="refused"} > 0')
    return done
