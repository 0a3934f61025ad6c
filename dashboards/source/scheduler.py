# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""By what is decided, how fast, and what comes of it."""

from . import panels as p
from .dashboard import Dashboard
from .queries import GPU, JOB, OF_GPU, OF_POD, buckets, increase, quantiles, rate, target

_OF = "node, gpu"


def _policy(board):
    board.row("Policy")
    board.add(12, 7, p.table(
        "In force", "By what each GPU's daemon decides who begins an iteration and who waits. lanes: how many jobs may be inside their "
        "iterations at once; claims: what others may count on meanwhile. Not what the chart says: somebody used `sluice policy`, which "
        "outlives the daemon, or auto has chosen.",
        [("In force", p.COUNT, f"max by (node, gpu, policy, lanes, claims) (sluice_policy_info{{{GPU}}})")],
        [("node", "Node"), ("gpu", "GPU"), ("policy", "Policy"), ("lanes", "Lanes"), ("claims", "Claims")]))
    board.add(12, 7, p.states(
        "Policy over time", "Which policy, lanes and claims were in force when. Under auto a change when jobs come and go is a measurement; "
        "changes all the time are not: give it a fixed policy (`sluice policy flow`).",
        target(f"max by (node, gpu, policy, lanes, claims) (sluice_policy_info{{{GPU}}})",
               f"{OF_GPU} {{{{policy}}}}, lanes {{{{lanes}}}}, {{{{claims}}}}")))
    board.add(8, 8, p.series(
        "Switches", "Changes of policy, lanes or claims in each interval. Auto tries a few after jobs came or went and then stays. Switches "
        "that do not end cost iterations: look whether jobs restart all the time.",
        p.COUNT, target(increase("sluice_policy_switches_total", GPU, _OF), OF_GPU)))
    board.add(8, 8, p.series(
        "Iterations of all jobs", "Iterations that begin in a second, in sum over the jobs of a GPU: what the GPU gets done. Compare it "
        "before and after a change of policy, with the same jobs; if `temporal` gives as much, sharing gains nothing here.",
        p.PER_SECOND, target(rate("sluice_job_iterations_total", JOB, _OF), OF_GPU)))
    board.add(8, 8, p.series(
        "Jobs by what they do", "How many jobs run, are parked, wait, are measured. Always one running and the rest parked: the policy is "
        "temporal, lanes is 1, or the claims do not fit beside each other.",
        p.COUNT, target(f"sum by (phase) (sluice_jobs{{{GPU}}}) > 0", "{{phase}}"), stacked=True))


def _decisions(board):
    board.row("Decisions")
    board.add(8, 8, p.series(
        "Decisions", "How often the scheduler was asked in a second what may go on. It follows the jobs' requests and fences. Zero while jobs "
        "run: nobody asks, so nobody needs anything; a sudden multiple: a job that asks for memory in very small pieces.",
        p.PER_SECOND, target(rate("sluice_decisions_total", GPU, _OF), OF_GPU)))
    board.add(8, 8, p.series(
        "Time of a decision", "Median and 99th percentile. Microseconds are usual. It grows with the number of jobs and of scattered extents; "
        "above a millisecond jobs notice it: alert SluiceDecisionsSlow, and look at the CPU of the node's pod.",
        p.SECONDS, *quantiles("sluice_decision_seconds", GPU, _OF)))
    board.add(8, 8, p.series(
        "Time to answer a lease", "From a lease's request to its answer, of those that waited for nothing. It is what the daemon costs a job. "
        "When it rises and decisions do not, the daemon gets too little CPU: see node.resources of the chart.",
        p.SECONDS, *quantiles("sluice_lease_service_seconds", GPU, _OF)))


def _movement(board):
    board.row("Memory that changes hands")
    board.add(12, 8, p.heat(
        "Handovers", "From when a job gave memory up until its GPU was done with it, and it could be another's. A band "
        "that climbs: kernels are long or credits wide; 'Job detail' shows the credit of each job.",
        buckets("sluice_handover_seconds", GPU)))
    board.add(12, 8, p.heat(
        "Reclaims", "From the end of a job until all that it held was free. Milliseconds are usual. Tens of seconds: a process that the job "
        "started lives on and may still use the memory: `sluice status` lists the job as dying.",
        buckets("sluice_reclaim_seconds", GPU)))
    board.add(8, 8, p.series(
        "Fences on their way", "Releases whose memory is not free yet, because work that was queued before is under way. It goes up and down "
        "with the jobs. One that never comes down: a kernel hangs, and with it whoever waits for that memory.",
        p.COUNT, target(f"sum by ({_OF}) (sluice_fences_pending{{{GPU}}})", OF_GPU)))
    board.add(8, 8, p.series(
        "Loans", "Grants with memory of another job in them, in a second. Under temporal there are none within iterations. If it falls to "
        "zero under flow, the jobs do not overlap any more: see their phases and waits.",
        p.PER_SECOND, target(rate("sluice_loans_total", GPU + ',lender_id!="0"', _OF), OF_GPU)))
    board.add(8, 8, p.series(
        "Credit by pod", "How far each pod's CPU may run ahead of its GPU work. Narrow credits make memory flow and may leave the GPU idle; "
        "they are tuned by themselves. A credit that stays at its widest: the GPU is idle between that job's launches.",
        p.SECONDS, target(f"max by (namespace, pod) (sluice_job_credit_seconds{{{JOB}}})", OF_POD)))


def _waits(board):
    board.row("Who waits for it")
    board.add(12, 8, p.series(
        "Time waited, by pod", "Seconds of waiting in each second and pod, at gates and for leases. Spread evenly it is the price of sharing. "
        "One pod that waits far more than the others: its claim is the largest, or its priority the lowest.",
        p.SHARE, target(f"{rate('sluice_job_gate_wait_seconds_sum', JOB, 'namespace, pod')} + "
                        f"{rate('sluice_job_lease_wait_seconds_sum', JOB, 'namespace, pod')}", OF_POD)))
    board.add(12, 8, p.table(
        "Waits in this time, by reason", "How often and for what each pod waited in the time that is shown. admission and measurement come "
        "once for each job; standstill is where nothing moved and somebody had to give way: it should be rare.",
        [("Waits", p.COUNT, increase("sluice_job_waits_total", JOB, "namespace, pod, reason", "$__range"))],
        [("namespace", "Namespace"), ("pod", "Pod"), ("reason", "Reason")]))


def dashboard():
    board = Dashboard("sluice-scheduler", "Sluice / Scheduler and policy",
                      "By which policy the daemons decide, how fast, how memory changes hands, and how the waiting is spread.")
    _policy(board)
    _decisions(board)
    _movement(board)
    _waits(board)
    return board
