# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""PyTorch on a real GPU, for parts.py: its ways to allocate, and two trainings that do not fit together."""
import bisect
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import machine
from cases import Failure

HANDLE = 32 * machine.MIB
ASYNC = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync", "PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "PYTORCH_ALLOC_CONF": "expandable_segments:True"}
# cuBLAS computes the same bits only with a workspace of its own choice.
SAME_BITS = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
# What the pool leases to expandable segments are handles of their own, as large as PyTorch's smallest.
SMALL_HANDLES = ("--lease-unit", "2MiB", "--handle", "2MiB")
# Name, environment, flags of torch_job.py, of `sluice run`, of sluice-noded.
WAYS = (("native allocator", {}, (), (), ()), ("cudaMallocAsync", ASYNC, (), (), ()),
        ("expandable segments", EXPANDABLE, (), ("--frameworks", "expandable"), SMALL_HANDLES),
        ("CUDA graph", {}, ("--way", "graph"), (), ()),
        # It asks the allocator what is live, which that over cudaMallocAsync does not tell (PyTorch 2.11).
        ("torch.compile, reduce-overhead", {}, ("--way", "compile"), ("--frameworks", "expandable"), SMALL_HANDLES))
WAY_LIMIT_S = 100
# Of `pair`. Beside these there is what runs without Sluice.
POLICIES = ("temporal", "flow", "auto")
# For PyTorch to load.
LOAD_LIMIT_S = 60


def require_torch(context, skip):
    if context.simulator:
        raise skip("PyTorch needs a real driver: NVIDIA's runtime library refuses the simulated one")
    done = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], env=context.torch_environment,
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise skip("no PyTorch in " + sys.executable)


class Job:
    """One torch_job.py under way. Loads PyTorch at once, and begins with begin()."""

    def __init__(self, here, command, environment):
        self._when = here.scratch / f"when-{time.monotonic_ns()}"
        command = [*command, "--when", self._when]
        # Files, not pipes: both are read when both are over.
        self._out = open(here.scratch / f"job-{time.monotonic_ns()}.out", "w+")
        self._err = open(self._out.name.replace(".out", ".err"), "w+")
        self._process = subprocess.Popen([str(word) for word in command], env={**here.environment, **environment},
                                         stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err)

    def await_loaded(self, limit_s):
        """Until it could begin, or has ended."""
        loaded = self._when.with_name(self._when.name + ".loaded")
        until = time.monotonic() + limit_s
        while not loaded.exists() and self._process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def begin(self):
        self._began = time.monotonic()
        self._when.touch()
        return self

    def finish(self, limit_s):
        """What it printed and "wall_s", or "failed": its last words."""
        try:
            code = self._process.wait(timeout=max(1, limit_s))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return {"failed": f"not over after {limit_s:.0f} s"}
        wall = time.monotonic() - self._began
        self._out.seek(0)
        self._err.seek(0)
        if code != 0:
            said = [line for line in self._err.read().splitlines() if line.strip()]
            return {"failed": (said[-1] if said else f"exit {code}")[:400]}
        return {**json.loads(self._out.read().splitlines()[-1]), "wall_s": round(wall, 3)}


def job_command(seed, flags):
    return [sys.executable, machine.HERE / "torch_job.py", "--seed", seed, *flags]


def run_ways(context, section, save):
    """Each way alone and as the one job of a pool, which must not change a bit."""
    failed = []
    with machine.Machine(context.folder, context.scratch, context.torch_environment) as here:
        for name, environment, flags, run_flags, noded_flags in WAYS:
            if context.left() < 30:
                section.append({"way": name, "not_run": "no time left"})
                continue
            command = job_command(1, ["--batch", "32", "--iterations", "40", *flags])
            row = {"way": name}
            with here.daemon(16 << 30, ["--lend", "eager", *noded_flags]) as folder:
                both = (Job(here, command, {**SAME_BITS, **environment}),
                        Job(here, here.job(folder, command, run_flags), {**SAME_BITS, **environment}))
                await_loaded(context, both)
                for way, job in zip(("alone", "under_sluice"), both):
                    row[way] = job.begin().finish(min(WAY_LIMIT_S, context.left()))
                row["leases"] = granted(folder / "events.jsonl")
            row["same_bits"] = "losses" in row["alone"] and \
                row["alone"].get("losses") == row["under_sluice"].get("losses")
            for outcome in (row["alone"], row["under_sluice"]):
                outcome.pop("losses", None)
                outcome.pop("ends_s", None)
            section.append(row)
            save()
            # What PyTorch cannot do alone it need not do here.
            if "failed" not in row["alone"] and not row["same_bits"]:
                failed.append(f"{name}: {row['under_sluice'].get('failed', 'other losses')}")
    if failed:
        raise Failure("; ".join(failed))


def granted(log):
    """How many leases a daemon's log shows."""
    with open(log) as file:
        return sum(1 for line in file if '"event":"grant"' in line.replace(" ", ""))


@contextlib.contextmanager
def mps_server(context):
    """The environment of clients of an MPS server of its own; None where none starts."""
    folder = context.scratch / "mps"
    for name in ("pipe", "log"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        # Clients of other users open the pipes as well.
        os.chmod(folder / name, 0o777)
    os.chmod(context.scratch, 0o755)
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    everything = {**context.environment, **environment}
    control = shutil.which("nvidia-cuda-mps-control")
    started = None
    if control is not None:
        try:
            # Not over pipes: the server, which goes on, would hold them open.
            started = subprocess.run([control, "-d"], env=everything, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
        except subprocess.TimeoutExpired:
            pass
    if started is None or started.returncode != 0:
        yield None
        return
    try:
        yield environment
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([control], env=everything, input="quit -t 1\n", text=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=30)


def run(context, section, save):
    """All ways to run two trainings. `section` says for each how long both took and what became of them.

    PyTorch is loaded before a way's turn comes, and in none of the times.
    """
    # Long enough for `auto` to have measured its ways and stay with one for a while.
    flags = [["--model", "resnet50", "--batch", batch, "--iterations", "150"] for batch in ("96", "64")]
    jobs = [(seed, job_flags) for seed, job_flags in zip((1, 2), flags)]
    section["jobs"] = [" ".join(job_flags) for job_flags in flags]
    async_bits = {**SAME_BITS, **ASYNC}
    with machine.Machine(context.folder, context.scratch, context.torch_environment, context.simulator) as here:
        def load(environment, folder=None):
            commands = [job_command(*job) for job in jobs]
            return [Job(here, here.job(folder, command) if folder else command, environment) for command in commands]

        def under_sluice(pool, ways):
            """One daemon for each, all loaded before the first one begins. `ways`: key, policy, environment."""
            with contextlib.ExitStack() as daemons:
                loaded = {}
                for key, policy, environment in ways:
                    folder = daemons.enter_context(here.daemon(pool, ["--policy", policy]))
                    loaded[key] = folder, load({**async_bits, **environment}, folder)
                await_loaded(context, [job for _, both_jobs in loaded.values() for job in both_jobs])
                for key, (folder, both_jobs) in loaded.items():
                    section[key] = both(both_jobs, context, solo)
                    section[key]["chose"] = last_choice(folder / "noded.log")
                    save()

        alone, sliced, crowded = load(async_bits), load(async_bits), load(async_bits)
        with mps_server(context) as mps:
            served = load({**async_bits, **mps}) if mps is not None else None
            await_loaded(context, [*alone, *sliced, *crowded, *(served or ())])
            solo = [job.begin().finish(context.left()) for job in alone]
            section["solo"] = [told(outcome) for outcome in solo]
            save()
            if any("failed" in outcome for outcome in solo):
                raise Failure(f"a job alone fails: {[outcome.get('failed') for outcome in solo]}")
            section["one_after_the_other_s"] = sum(outcome["wall_s"] for outcome in solo)
            section["one_after_the_other_iterations_s"] = sum(outcome["iterations_s"] for outcome in solo)
            peaks = [outcome["peak_reserved_bytes"] for outcome in solo]
            pool = max(sum(peaks) * 64 // 100 // HANDLE * HANDLE, (max(peaks) + 2 * HANDLE) // HANDLE * HANDLE)
            section["pool_bytes"] = pool
            section["pool_over_sum_of_peaks"] = round(pool / sum(peaks), 3)
            # Side by side without Sluice, first with all of the GPU, in the end with the memory of the pool.
            section["time_slicing"] = both(sliced, context, solo)
            save()
            section["mps"] = both(served, context, solo) if served else {"not_run": "no MPS server starts here"}
            save()
            under_sluice(pool, [(f"sluice_{policy}", policy, {}) for policy in POLICIES])
            if mps is not None:
                under_sluice(pool, [(f"sluice_{policy}_mps", policy, mps) for policy in POLICIES])
            section["sluice_alone"] = [observed(context, here, pool, job, async_bits) for job in jobs]
            save()
        with here.ballast() as ballast:
            ballast.leave(pool + (2 << 30))
            section["time_slicing_in_the_pools_memory"] = both(crowded, context, solo)
        save()
    for key in (key for key in section if key.startswith("sluice_") and key != "sluice_alone"):
        if not section[key]["all_finished"] or not section[key]["same_bits"]:
            raise Failure(f"{key}: {json.dumps(section[key])}")


def observed(context, here, pool, job, environment):
    """One of the jobs by itself in the pool, recorded by its daemon."""
    with here.daemon(pool) as folder:
        recording = ["--observe", "--trace", here.scratch / f"job-{job[0]}.trace"]
        alone = Job(here, here.job(folder, job_command(*job), recording), environment)
        await_loaded(context, [alone])
        return told(alone.begin().finish(context.left()))


def last_choice(log):
    """What `auto` stayed with, by its daemon's log; empty when it did not come so far."""
    said = [line for line in log.read_text().splitlines() if "auto: stays with" in line]
    return said[-1].split("auto: ", 1)[1] if said else ""


def await_loaded(context, loaded):
    for job in loaded:
        job.await_loaded(min(LOAD_LIMIT_S, context.left()))


def both(loaded, context, solo):
    """Both at once; how long from their beginning to the last end."""
    if context.left() < 20:
        return {"not_run": "no time left", "all_finished": False, "same_bits": False}
    began = time.monotonic()
    running = [job.begin() for job in loaded]
    ended = [job.finish(context.left()) for job in running]
    finished = all("failed" not in outcome for outcome in ended)
    return {"wall_s": round(time.monotonic() - began, 3),
            "all_finished": finished,
            "same_bits": all(a.get("losses") == b["losses"] for a, b in zip(ended, solo)),
            "speed": speed(ended, solo) if finished else None,
            "late_speed": speed(ended, solo, 0.5) if finished else None,
            "jobs": [told(outcome) for outcome in ended]}


def speed(ended, solo, begin=0.0):
    """Work done per second while all jobs are under way: 1 is what one job after the other does.

    An iteration is worth its job's median alone. The first ten of each job are left out, and the part `begin` of the rest.
    """
    if any(len(outcome["ends_s"]) <= 10 for outcome in ended):
        return None
    first = max(outcome["ends_s"][9] for outcome in ended)
    until = min(outcome["ends_s"][-1] for outcome in ended)
    if until <= first:
        return None
    since = first + begin * (until - first)
    done = sum((done_by(outcome["ends_s"], until) - done_by(outcome["ends_s"], since)) * alone["iteration_s"]
               for outcome, alone in zip(ended, solo))
    return round(done / (until - since), 4)


def done_by(ends, when):
    """Iterations, the one under way in parts."""
    count = bisect.bisect_right(ends, when)
    if count == 0 or count == len(ends):
        return count
    return count + (when - ends[count - 1]) / (ends[count] - ends[count - 1])


def told(outcome):
    """Without what is there to be compared or counted only."""
    return {key: value for key, value in outcome.items() if key not in ("losses", "ends_s")}
