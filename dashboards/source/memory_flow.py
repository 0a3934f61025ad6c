# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Who holds what, who lends to whom, and who waits for it."""

from . import panels as p
from .dashboard import Dashboard
from .queries import GPU, JOB, OF_GPU, OF_POD, buckets, now, rate, target

_PAIR = "lender_namespace, lender_pod, borrower_namespace, borrower_pod"
# In the time that is shown.
_SHOWN = "increase({}[$__range])"
_FROM_TO = "{{lender_namespace}}/{{lender_pod}} → {{borrower_namespace}}/{{borrower_pod}}"


def _loan(metric, function="{}"):
    """Loans in which a selected pod is on either side. With a function of what was counted in a time, those of pairs: what pairs had that
    are forgotten goes to the one with the id 0, where it would be counted once more."""
    pairs = "" if function == "{}" else ',lender_id!="0"'
    sides = (f'{metric}{{{GPU}{pairs},{side}_namespace=~"$namespace",{side}_pod=~"$pod"}}' for side in ("lender", "borrower"))
    return " or ".join(function.format(side) for side in sides)


def _pairs(metric, function="{}"):
    return f"sum by ({_PAIR}) ({_loan(metric, function)})"


def _by_pod(metric):
    return f"sum by (namespace, pod) ({metric}{{{JOB}}})"


def _of_gpus(metric):
    return f"sum({metric}{{{GPU}}})"


def _holders(board):
    board.row("Who holds what")
    board.add(18, 11, p.series(
        "Held memory by pod",
        "What each pod holds of the pools, stacked, and above it what is free and what is kept back beyond the budget; with all namespaces "
        "and pods selected the stack reaches the line of the pool. Each point is the moment of a scrape: memory moves many times between two, "
        "which the live page shows. A pod that stays at its peak lends nothing: look at its credit in 'Job detail'. A stack that does not "
        "reach the line is a defect (alert SluiceSumsDisagree).",
        p.BYTES,
        target(_by_pod("sluice_job_held_bytes"), OF_POD),
        target(_of_gpus("sluice_pool_free_bytes"), "free"),
        target(_of_gpus("sluice_pool_reserve_bytes"), "reserve"),
        target(_of_gpus("sluice_pool_bytes"), "pool"),
        target(_of_gpus("sluice_pool_budget_bytes"), "budget"),
        stacked=True, overrides=[*p.colored("free", "reserve", "pool", "budget"), p.line("pool"), p.line("budget")]))
    board.add(6, 3,
              p.stat("Held", "What of the selected pools is held at the moment. Low while jobs wait means that claims or places are in the "
                     "way and not bytes: look at the reasons of the waits below.", p.SHARE,
                     now(f"{_of_gpus('sluice_pool_held_bytes')} / {_of_gpus('sluice_pool_bytes')}")))
    board.below(6, 3, p.stat(
        "Lent at the moment", "What of the selected pools is on loan: held by one job and needed by its lender again. Zero for long with "
        "two jobs that run means that nothing is shared: look at the policy in force and at what the jobs claim.", p.BYTES,
        now(f"sum({_loan('sluice_loan_bytes')})")))
    board.below(6, 3, p.stat(
        "Lent in this time", "All bytes that went from the selected pods to others in the time that is shown. It says what sharing gives: "
        "without Sluice all this memory would have to exist twice.", p.BYTES,
        now(f"sum(increase(sluice_job_lent_bytes_total{{{JOB}}}[$__range]))")))
    board.below(6, 2, p.stat(
        "Jobs that wait", "Jobs that stand at a gate or wait for memory at the moment. Some waiting is how sharing works; the same jobs for "
        "minutes is not: the alert SluiceJobStarves names them, and `sluice explain JOB` says for whom they wait.", p.COUNT,
        now(f"count(sluice_job_waiting_seconds{{{JOB}}}) or vector(0)"), steps=((None, p.BLUE), (1, p.ORANGE))))


def _loans(board):
    board.row("Lending")
    board.add(12, 9, p.series(
        "Borrowed (above) and lent (below) by pod",
        "What each pod holds of others', and with a minus what others hold of its memory. With all pods selected the two sides are equal at every moment. A pod "
        "that only ever borrows has too small a request, one that only ever lends too large a one.",
        p.BYTES,
        target(_by_pod("sluice_job_borrowed_bytes"), f"{OF_POD} borrowed"),
        target(f"-{_by_pod('sluice_job_lent_bytes')}", f"{OF_POD} lent"),
        minimum=None))
    board.add(12, 9, p.series(
        "Flow by pod",
        "Bytes in a second that went from a pod to others (lent), and that came to it (borrowed). This is the flow that no single look at "
        "what is held shows. It stops when jobs no longer meet in the pool, under policy temporal, and while a job is being measured.",
        p.BYTES_PER_SECOND,
        target(rate("sluice_job_borrowed_bytes_total", JOB, "namespace, pod"), f"{OF_POD} borrowed"),
        target(f"-{rate('sluice_job_lent_bytes_total', JOB, 'namespace, pod')}", f"{OF_POD} lent"),
        minimum=None))
    board.add(12, 9, p.series(
        "Loans, lender → borrower",
        "Bytes that the borrower holds of the lender's memory. A loan that stays as it is for many iterations is no loan but a wrong "
        "request: raise the borrower's or lower the lender's.",
        p.BYTES, target(_pairs("sluice_loan_bytes"), _FROM_TO), stacked=True))
    board.add(12, 9, p.table(
        "Who lent what to whom",
        "Each pair of pods with what is on loan now, and what was lent, given back and how often in the time that is shown. Lent is given "
        "back plus what is on loan: if the gap only grows, somebody keeps what he borrowed; look at his base in 'Job detail'.",
        [("On loan", p.BYTES, _pairs("sluice_loan_bytes")),
         ("Lent", p.BYTES, _pairs("sluice_loan_bytes_total", _SHOWN)),
         ("Given back", p.BYTES, _pairs("sluice_loan_returned_bytes_total", _SHOWN)),
         ("Loans", p.COUNT, _pairs("sluice_loans_total", _SHOWN))],
        [("lender_namespace", "Lender's namespace"), ("lender_pod", "Lender"), ("borrower_namespace", "Borrower's namespace"),
         ("borrower_pod", "Borrower")]))


def _demand(board):
    board.row("Demand against claim")
    board.add(12, 9, p.series(
        "Live, held and claimed",
        "What the selected programs have allocated (live), what they hold for it, and what they may hold in their iterations (claim), in "
        "sum. Held far above live: memory is kept that is not needed, look at fences and credit. Claim far above held: others wait for "
        "bytes that nobody uses, look at the policy's claims (`sluice policy`).",
        p.BYTES,
        target(f"sum(sluice_job_live_bytes{{{JOB}}})", "live"),
        target(f"sum(sluice_job_held_bytes{{{JOB}}})", "held"),
        target(f"sum(sluice_job_claim_bytes{{{JOB}}})", "claim"),
        target(_of_gpus("sluice_pool_bytes"), "pool"),
        overrides=[*p.colored("live", "held", "claim", "pool"), p.line("pool")]))
    board.add(12, 9, p.series(
        "Live memory of the claim, by pod",
        "What of its claim a pod has allocated. Near 100 % the claim is what the pod needs. Low all the time: its iterations differ or it "
        "was measured at a large batch, and others wait for the difference; it is measured anew when it leaves its profile.",
        p.SHARE,
        target(f"{_by_pod('sluice_job_live_bytes')} / ({_by_pod('sluice_job_claim_bytes')} > 0)", OF_POD), highest=1))


def _waits(board):
    board.row("Waits")
    board.add(12, 9, p.heat(
        "Gate waits",
        "How long jobs waited at their gates, those that went through at once included. A bright band that climbs above seconds: too many "
        "jobs for the pool, or one that keeps everybody waiting; the next panels say for what and whose.",
        buckets("sluice_job_gate_wait_seconds", JOB)))
    board.add(12, 9, p.heat(
        "Lease waits",
        "How long jobs waited for memory in the middle of an iteration. Inside a claim these are short. Long ones come from jobs without a "
        "profile, or from fences that are reached late: look at handovers in 'Scheduler and policy'.",
        buckets("sluice_job_lease_wait_seconds", JOB)))
    board.add(12, 8, p.series(
        "Who waits now, and for what",
        "Since when a pod waits, by reason; a line ends when the wait does. turn: others begin first. memory: a promise that others have yet "
        "to give back. place: bytes suffice, but no run does. measurement: a job without a profile runs alone. `sluice explain JOB` says the "
        "same in a sentence, with names.",
        p.SECONDS, target(f"max by (namespace, pod, reason) (sluice_job_waiting_seconds{{{JOB}}})", f"{OF_POD} {{{{reason}}}}")))
    board.add(12, 8, p.series(
        "Waits by reason",
        "How many waits began in a second, by reason, on the selected GPUs. Much 'place': the pool is fragmented. Much 'measurement': jobs "
        "come and go, or lose their cycle. Much 'budget': an operator lends less than the pool (`sluice budget`).",
        p.PER_SECOND, target(rate("sluice_job_waits_total", JOB, "node, gpu, reason"), f"{OF_GPU} {{{{reason}}}}"), stacked=True))


def dashboard():
    board = Dashboard("sluice-memory-flow", "Sluice / Memory flow",
                      "GPU memory as it moves between pods: who holds it, who lends it to whom, what was claimed, and who waits.")
    _holders(board)
    _loans(board)
    _demand(board)
    _waits(board)
    return board
