# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The cases of tests/gpu/run. Each returns figures; what is wrong is raised as Failure."""
import json
import re
import statistics
import subprocess
import time

MIB = 1 << 20
HANDLE = 2 * MIB
ITERATIONS = 200
# Of one case, as far as a call can be stopped.
LIMIT_S = 900
# The credit is at most 5 ms: 25 such kernels, a quarter of what a block is made of in launch_ahead.
KERNEL_US = 200
# Small units, so that a peak of some MiB is many of them; the same as in the demo on the simulated GPU.
SMALL_UNITS = ["--lease-unit", "256KiB", "--handle", "2MiB"]


class Failure(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Failure(text)


def values(text):
    """The lines "key=value" that the workload prints."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def finished(done, code=0):
    require(done.returncode == code,
            f"{' '.join(map(str, done.args))}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return values(done.stdout)


def iterations(here):
    return 20 if here.small else ITERATIONS


def trainers(here, count):
    """The two jobs of the demo."""
    return [[here.program("train"), "--model", model, "--seed", seed, "--iterations", count,
             "--learning-rate", "0.01"] for model, seed in (("small-a", "1"), ("small-b", "2"))]


def peak_bytes(stdout):
    peak = re.search(r"peak_bytes=(\d+)", stdout)
    require(peak, "the trainer prints no peak_bytes")
    return int(peak.group(1))


def pool_for(peaks):
    """What two jobs with these peaks share in the demo."""
    return sum(peaks) * 64 // 100 // HANDLE * HANDLE


def demo(here):
    """Two training jobs that do not fit together share one pool."""
    peaks = []
    for command in trainers(here, 10):
        done = here.run(command)
        finished(done)
        peaks.append(peak_bytes(done.stdout))
    pool = pool_for(peaks)
    command = [here.program("sluice"), "demo", "--json", "--iterations", str(iterations(here))]
    # Without --real-gpu the demo would bring up a simulated GPU of its own, from a build.
    command += ["--pool", str(pool), "--real-gpu"]
    done = here.run(command, timeout=1500)
    start = done.stdout.find("{")
    require(start >= 0, f"exit {done.returncode}, no JSON: {done.stderr.strip()[-400:]}")
    figures = json.loads(done.stdout[start:])
    require(done.returncode == 0, f"exit {done.returncode}: {done.stderr.strip()[-400:]}")
    require(figures["losses_bit_equal"], "the losses differ from those of the jobs alone")
    require(figures["lent_bytes_within_iterations"] > 0, "nothing was lent within iterations")
    require(figures["lent_bytes_within_iterations_temporal"] == 0, "temporal lent within iterations")
    require(figures["over_budget_moments"] == 0, "more than the pool was held")
    return figures


def crowded(here):
    """Without Sluice the jobs of the demo fit one by one, but not together, into the memory they share with it.

    A real GPU is far larger than that, so another process holds the rest. What a job takes beyond its blocks (its
    context, what the driver rounds up) it gets here on top, as it does in the demo on the simulated GPU.
    """
    jobs = trainers(here, iterations(here))
    with here.ballast() as ballast:
        peaks, footprints = zip(*(footprint(here, ballast, job) for job in jobs))
        pool = pool_for(peaks)
        wanted = sum(footprints) - (sum(peaks) - pool)
        require(wanted >= max(footprints), f"no job fits alone: {footprints}, {wanted} would be free")
        left = ballast.leave(wanted)
        for job in jobs:
            finished(here.run(job))
        # So many iterations that neither is done before the other one has begun.
        said = first_words([here.start(job, stdout=subprocess.DEVNULL)
                            for job in trainers(here, 100 * ITERATIONS)])
    require("out of memory" in said.lower() or "OUT_OF_MEMORY" in said, f"no job ran out of memory: {said}")
    return {"oom_without_sluice": True, "said": said, "solo_peak_bytes": list(peaks),
            "solo_footprint_bytes": list(footprints), "pool_bytes": pool, "free_bytes": left}


def footprint(here, ballast, job):
    """A job's peak by its own account, and the most that the GPU had less while it ran."""
    before = lowest = ballast.free_bytes()
    process = here.start(job)
    while process.poll() is None:
        lowest = min(lowest, ballast.free_bytes())
        time.sleep(0.002)
    out, err = process.communicate()
    require(process.returncode == 0, f"a job alone: exit {process.returncode}: {err.strip()[-400:]}")
    return peak_bytes(out), before - lowest


def first_words(processes):
    """The last line that the first of these to end wrote to standard error; the others are stopped."""
    deadline = time.monotonic() + 300
    try:
        while all(process.poll() is None for process in processes) and time.monotonic() < deadline:
            time.sleep(0.01)
        ended = next((process for process in processes if process.poll() is not None), None)
        require(ended is not None, "both jobs still run after five minutes")
        require(ended.returncode != 0, "a job finished beside the other")
        return (ended.stderr.read().strip().splitlines() or [f"exit {ended.returncode}"])[-1]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


class Triangle:
    """The workload of the integration test: memory grows slowly and is given up fast, in blocks as large as the groups
    that it is handed out in, under a CPU that runs far ahead of its GPU."""

    def __init__(self, here):
        blocks, block_units, up, down = 9, 8, 100, 6
        unit = MIB // 4 if here.simulated else 4 * MIB
        base = ["--blocks", blocks, "--block-bytes", block_units * unit, "--base-bytes", unit,
                "--launches-per-block", up, "--launches-down", down]
        self.here = here
        self.units = SMALL_UNITS if here.simulated else ["--lease-unit", "4MiB", "--handle", "32MiB"]
        self.pool = 12 * block_units * unit
        self.rounds = 0 if here.simulated else slow_down(here, base)
        self.cycle = [here.program("workload"), "--iterations", "10" if here.small else "40" if here.simulated else "20", *base, "--rounds",
                      self.rounds]
        self.launches = blocks * (up + down) + 1
        # Blocks rise and fall one by one over a base.
        self.live = (1 + block_units * (blocks + 1) / 2) / (1 + block_units * blocks)

    def measure(self, *credit):
        """Mean of what was held over its peak, and the time of an iteration in microseconds."""
        with self.here.daemon(self.pool, [*self.units, "--lend", "eager", *credit]) as folder:
            said = finished(self.here.run(self.here.job(folder, self.cycle)))
        require(said["mismatches"] == "0", "wrong bytes")
        done = self.here.run([self.here.program("sluice"), "check-log", folder / "events.jsonl"])
        require(done.returncode == 0, done.stdout + done.stderr)
        held = re.search(r"held ([0-9.]+) of its peak", done.stdout)
        require(held, "check-log does not say what was held")
        return float(held.group(1)), float(said["iteration_us"])


def credit_sweep(here):
    """How far the CPU may run ahead, against what is held and how long an iteration takes."""
    triangle = Triangle(here)
    rows = []
    for credit_us in (500, 50000) if here.small else (500, 1000, 2000, 5000, 10000, 20000, 50000):
        held, iteration_us = triangle.measure("--credit-us", str(credit_us))
        rows.append({"credit_us": credit_us, "held_over_peak": held, "iteration_us": iteration_us})
    require(rows[0]["held_over_peak"] < rows[-1]["held_over_peak"], f"the credit changes nothing: {rows}")
    return {"live_over_peak": round(triangle.live, 4), "rows": rows}


def launch_ahead(here):
    """What the credit does for a CPU that runs far ahead of its GPU."""
    triangle = Triangle(here)
    live, launches, rounds, pool = triangle.live, triangle.launches, triangle.rounds, triangle.pool
    pairs = [(triangle.measure("--credit", "off"), triangle.measure("--credit", "on")) for _ in range(1 if here.small else 3 if here.simulated else 5)]
    figures = {
        "live_over_peak": round(live, 4),
        "held_over_peak_credit_off": statistics.median(off[0] for off, on in pairs),
        "held_over_peak_credit_on": statistics.median(on[0] for off, on in pairs),
        "iteration_us_credit_off": statistics.median(off[1] for off, on in pairs),
        "iteration_us_credit_on": statistics.median(on[1] for off, on in pairs),
        "iteration_growth": statistics.median(on[1] / off[1] - 1 for off, on in pairs),
        "kernel_us": statistics.median(off[1] for off, on in pairs) / launches,
        "launches_per_iteration": launches, "rounds": rounds, "pool_bytes": pool,
    }
    require(figures["held_over_peak_credit_off"] >= 0.9, f"without credit: {figures}")
    require(figures["held_over_peak_credit_on"] < figures["held_over_peak_credit_off"], f"with credit: {figures}")
    if not here.small:  # one short pair of runs is no measurement
        require(figures["held_over_peak_credit_on"] <= live + 0.05, f"with credit: {figures}")
        require(figures["iteration_growth"] <= 0.03, f"the GPU idles: {figures}")
    return figures


def slow_down(here, base):
    """Rounds per word that make a kernel last 200 us, more than 20 launches."""
    def kernel_us(rounds):
        said = finished(here.run([here.program("workload"), "--iterations", "20", *base, "--rounds",
                                  rounds]))
        return float(said["iteration_us"]) / int(said["launches_per_iteration"])

    idle, slow = kernel_us(0), kernel_us(256)
    if idle >= KERNEL_US:
        return 0
    return max(1, round((KERNEL_US - idle) / max(slow - idle, 0.01) * 256))


def limits(here):
    """A limit is kept, what is lent out is waited for, and nobody gets memory without a daemon."""
    workload = here.program("workload")
    with here.daemon(16 * MIB, SMALL_UNITS) as folder:
        done = here.run(here.job(folder, [workload, "--over-limit", "6MiB", "--one-shot"],
                                 ["--limit", "4MiB"]))
        over = finished(done)
        require(over.get("over_limit") == "CUDA_ERROR_OUT_OF_MEMORY", "the limit was not kept")
        require("limit" in done.stderr, "no reason on standard error")

    with here.daemon(16 * MIB, SMALL_UNITS) as folder:
        waited = wait_for_holder(here, folder, workload)

    absent = here.run([workload, "--one-shot"],
                      environment={"SLUICE_SOCKET": str(here.scratch / "nobody.sock"),
                                   "LD_PRELOAD": str(here.library)})
    require(absent.returncode == 4, f"without a daemon: exit {absent.returncode}: {absent.stderr}")
    said = [line for line in absent.stderr.splitlines() if line.startswith("sluice")]
    require(len(said) == 1, f"without a daemon {len(said)} lines: {absent.stderr}")
    return {"over_limit_us": int(over["over_limit_us"]), "waited_us": waited,
            "without_daemon": said[0]}


def wait_for_holder(here, folder, workload):
    """A job waits for memory that another holds, says so, and goes on when that one ends."""
    holder = here.start(here.job(folder, [workload, "--one-shot", "--hold", "--block-bytes", "12MiB"],
                                 ["--limit", "13MiB"]))
    waiter = None
    try:
        for line in holder.stdout:
            if line.strip() == "holding":
                break
        waiter = here.start(here.job(folder, [workload, "--one-shot", "--block-bytes", "10MiB"],
                                     ["--limit", "11MiB"]))
        began = time.monotonic()
        line = next((text for text in waiter.stderr if text.startswith("sluice")), "")
        holder.communicate("", timeout=60)
        _, err = waiter.communicate("", timeout=60)
        waited_us = round(1e6 * (time.monotonic() - began))
    except subprocess.TimeoutExpired as error:
        raise Failure(f"a job did not end: {error}") from error
    finally:
        for process in (holder, waiter):
            if process is not None and process.poll() is None:
                process.kill()
    require(holder.returncode == 0 and waiter.returncode == 0, f"a job failed: {line}{err}")
    require("wait" in line, f"no word about waiting: {line}")
    # The line comes after a second of waiting.
    require(waited_us >= 1_000_000, f"waited only {waited_us} us")
    return waited_us


CASES = {"credit_sweep": credit_sweep, "crowded": crowded, "demo": demo, "launch_ahead": launch_ahead, "limits": limits}


def run(name, here):
    outcome = {"name": name, "ok": True, "reason": "", "figures": {}}
    try:
        outcome["figures"] = CASES[name](here)
    except (Failure, KeyError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        outcome["ok"] = False
        outcome["reason"] = f"{type(error).__name__}: {error}"
    return outcome
