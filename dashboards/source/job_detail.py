# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""One job: its memory, its iterations, and what it waited for."""

from . import panels as p
from .dashboard import Dashboard
from .queries import JOB, OF_JOB, buckets, increase, rate, target

_LABELS = "namespace, pod, container"


def _of(metric):
    return f"sum({metric}{{{JOB}}})"


def _each(metric):
    return f"sum by ({_LABELS}) ({metric}{{{JOB}}})"


def _memory(board):
    board.row("Memory")
    board.add(16, 10, p.series(
        "Held, live and claimed, below the limit",
        "The selected jobs in sum; select one pod. live is what the program has allocated, held what it has of the pool for that, claim the "
        "most that it may hold in this iteration (0 between two), base what it keeps at its trough. Held that touches the limit: the next "
        "allocation fails, raise the limit (`sluice limit`, annotation sluice.dev/memory-limit).",
        p.BYTES, *[target(_of(f"sluice_job_{name}_bytes"), name) for name in ("held", "live", "claim", "limit", "request", "base")],
        overrides=[*p.colored("held", "live", "claim", "limit", "request", "base"), p.line("limit"), p.line("request"), p.line("base")]))
    board.add(8, 10, p.series(
        "What the job holds without need, or elsewhere",
        "spare: held and not needed just now. unfenced: given up, and the GPU is not done with it. outside: charged beside the pool. host "
        "tier: moved to host memory. Much spare for long: nobody else is there, or lend is off; much unfenced: a long kernel or a credit "
        "that is too wide.",
        p.BYTES, target(_of("sluice_job_spare_bytes"), "spare"), target(_of("sluice_job_unfenced_bytes"), "unfenced"),
        target(_of("sluice_job_outside_bytes"), "outside"), target(_of("sluice_job_host_tier_bytes"), "host tier")))
    board.add(12, 8, p.series(
        "Lent and borrowed",
        "What others hold of the job's memory, and what it holds of others'. A job that only ever borrows should request more; one that "
        "never lends has a flat curve, no profile, or nobody beside it.",
        p.BYTES, target(_of("sluice_job_lent_bytes"), "lent"), target(_of("sluice_job_borrowed_bytes"), "borrowed")))
    board.add(12, 8, p.series(
        "Most ever held, of the limit",
        "The largest amount that a job ever held over its limit. Far below 100 % after some iterations: lower the limit, and others are "
        "admitted beside it. At 100 %: it was at its limit and may have been refused.",
        p.SHARE, target(f"{_each('sluice_job_peak_held_bytes')} / ({_each('sluice_job_limit_bytes')} > 0)", OF_JOB), highest=1))


def _iterations(board):
    board.row("Iterations")
    board.add(8, 8, p.series(
        "Iterations and launches",
        "Iterations that begin in a second, and (divided by a thousand) launches, copies and memsets. No iterations although launches go "
        "on: Sluice finds no cycle, and the job lends nothing; no launches: the program does something else, or hangs.",
        p.PER_SECOND, target(rate("sluice_job_iterations_total", JOB, _LABELS), f"{OF_JOB} iterations"),
        target(f"{rate('sluice_job_launches_total', JOB, _LABELS)} / 1000", f"{OF_JOB} launches / 1000")))
    board.add(8, 8, p.series(
        "Time of an iteration",
        "GPU time of an iteration as the profile has it, and the time between two as they really begin. The second far above the first: "
        "the job waits, for others (below) or for its own data. Absent until the job has a profile.",
        p.SECONDS, target(f"max by ({_LABELS}) (sluice_job_iteration_seconds{{{JOB}}})", f"{OF_JOB} profile"),
        target(f"1 / ({rate('sluice_job_iterations_total', JOB, _LABELS)} > 0)", f"{OF_JOB} between two")))
    board.add(8, 8, p.series(
        "Credit and run-ahead",
        "How far the CPU may run ahead of the GPU, and how far it did when the job last told. Run-ahead at the credit all the time is "
        "normal for training. A credit near the time of an iteration: frees come late, and nothing can be lent within it.",
        p.SECONDS, target(f"max by ({_LABELS}) (sluice_job_credit_seconds{{{JOB}}})", f"{OF_JOB} credit"),
        target(f"max by ({_LABELS}) (sluice_job_run_ahead_seconds{{{JOB}}})", f"{OF_JOB} run-ahead")))
    board.add(24, 6, p.states(
        "Phases",
        "What the selected jobs are doing; select one pod. running and parked take turns. unprofiled again and again: its iterations differ "
        "and it is measured anew each time. evicted: it left its claim and is in host memory. dying: a child still holds its memory.",
        target(f"max by (phase) (sluice_job_phase{{{JOB}}})", "{{phase}}")))


def _waits(board):
    board.row("Waits")
    board.add(8, 8, p.series(
        "Share of the time that it waits",
        "Seconds of waiting in each second, at gates and for leases. It is the price of sharing for this job. Above 80 % for long: the pool "
        "is too small for these jobs together, see alert SluiceSharingCosts.",
        p.SHARE, target(rate("sluice_job_gate_wait_seconds_sum", JOB, _LABELS), f"{OF_JOB} gates"),
        target(rate("sluice_job_lease_wait_seconds_sum", JOB, _LABELS), f"{OF_JOB} leases"), stacked=True))
    board.add(8, 8, p.heat(
        "Gate waits", "How long the selected jobs waited at their gates, those that went through at once included. Long waits of a job with "
        "a low priority are what was asked for; of all jobs: too many for this pool.", buckets("sluice_job_gate_wait_seconds", JOB)))
    board.add(8, 8, p.heat(
        "Lease waits", "How long the selected jobs waited for memory between gates. A job inside its claim hardly waits; long waits mean a job "
        "without a profile or one that wants more than it claimed.", buckets("sluice_job_lease_wait_seconds", JOB)))
    board.add(12, 8, p.series(
        "Waits now, by reason",
        "Since when a job waits and for what; the line ends with the wait. `sluice explain JOB` says the same as a sentence, with the names "
        "of who holds what. A line that rises for minutes is what alert SluiceJobStarves looks at.",
        p.SECONDS, target(f"max by ({_LABELS}, reason) (sluice_job_waiting_seconds{{{JOB}}})", f"{OF_JOB} {{{{reason}}}}")))
    board.add(12, 8, p.series(
        "Waits by reason",
        "How many waits began in a second, by reason. 'fence' is the job's own GPU work, 'turn' and 'memory' are others, 'place' is "
        "fragmentation, 'host-memory' the way back from an eviction.",
        p.PER_SECOND, target(rate("sluice_job_waits_total", JOB, f"{_LABELS}, reason"), f"{OF_JOB} {{{{reason}}}}"), stacked=True))


def _troubles(board):
    board.row("What went wrong")
    board.add(8, 8, p.series(
        "Refusals by reason",
        "How often the job did not get memory, in each interval: each but 'gate' was CUDA_ERROR_OUT_OF_MEMORY to the program. gate: its gate "
        "opened without all of it, and nothing has to be done; over-limit: raise its limit; exhausted: too many jobs; outside: the reserve is full. Its stderr and `sluice explain JOB` have the sentence.",
        p.COUNT, target(increase("sluice_job_refusals_total", JOB, f"{_LABELS}, reason"), f"{OF_JOB} {{{{reason}}}}")))
    board.add(8, 8, p.series(
        "Deviations and claim raises",
        "Deviations: it left its profile and is measured anew, during which no other job begins an iteration. Claim raises: it was allowed "
        "more than it claimed. Both again and again: its batches differ; steady shapes (padding, fixed batch) help everybody.",
        p.COUNT, target(increase("sluice_job_deviations_total", JOB, _LABELS), f"{OF_JOB} deviations"),
        target(increase("sluice_job_claim_raises_total", JOB, _LABELS), f"{OF_JOB} claim raises")))
    board.add(8, 8, p.series(
        "Evictions and returns",
        "How often it was moved to host memory and came back. One is the insurance at work; many are a job that never keeps its promise: "
        "alert SluiceEvictionsRepeat. More evictions than returns: it is still away, or was told out of memory. By turns: what it has at its trough, where --residents says so.",
        p.COUNT, target(increase("sluice_job_evictions_total", JOB, _LABELS), f"{OF_JOB} evictions"),
        target(increase("sluice_job_returns_total", JOB, _LABELS), f"{OF_JOB} returns"),
        target(increase("sluice_job_swaps_total", JOB, _LABELS), f"{OF_JOB} by turns")))


def dashboard():
    board = Dashboard("sluice-job-detail", "Sluice / Job detail",
                      "One job (select its pod): memory against its limit and claim, iterations, waits with reasons, and what went wrong.")
    _memory(board)
    _iterations(board)
    _waits(board)
    _troubles(board)
    return board
