# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The parts of tests/gpu/run. Each fills its section of the result as it goes and raises Failure at the end if
something is wrong, or Skip when this machine cannot answer it.
"""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import cases
import contract
import machine
import pair
from cases import Failure


class Skip(Exception):
    pass


class Context:
    """What the parts share: where they run, with what, and until when."""

    def __init__(self, folder, source, scratch, environment, gpu, simulator, small, deadline):
        self.folder = folder          # programs, library, contract tests
        self.source = source          # repository, or what of it was carried
        self.scratch = scratch
        self.environment = environment
        self.gpu = gpu
        self.simulator = simulator    # a build whose simulated driver stands for the machine's; None: a real GPU
        self.small = small
        self.deadline = deadline      # of time.monotonic()
        self.simulated_answers = None  # of the contract tests, from the pack
        self.workers = 1              # contract tests at once on a real GPU
        self.cuda_include = None      # where cuda.h lies, if not in one of the usual places
        self.torch_environment = environment

    def left(self):
        return self.deadline - time.monotonic()


def run_abi(context, result, save):
    """Compares common/cuda/abi.h with the cuda.h of this machine."""
    header = next((folder for folder in (context.cuda_include, "/usr/local/cuda/include", "/usr/include")
                   if folder and os.path.exists(f"{folder}/cuda.h")), None)
    compiler = shutil.which("g++") or shutil.which("c++")
    if header is None or compiler is None:
        raise Skip("no cuda.h" if header is None else "no C++ compiler")
    out = context.scratch / "abi_check"
    objects = []
    for name in ("abi_check", "abi_ours", "abi_vendor"):
        objects.append(context.scratch / f"{name}.o")
        include = [f"-isystem{header}"] if name == "abi_vendor" else []
        _must([compiler, "-std=c++20", "-c", f"-I{context.source}", *include,
               context.source / f"tests/gpu/{name}.cc", "-o", objects[-1]])
    _must([compiler, *objects, "-o", out])
    done = subprocess.run([str(out)], capture_output=True, text=True, timeout=60)
    result["abi"] = {"header": header, "said": done.stdout.splitlines()}
    if done.returncode != 0:
        raise Failure(done.stdout.strip()[-600:] or f"exit {done.returncode}")


def _must(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failure(f"{command[0]}: {done.stderr.strip()[:600]}")


def kernel_image(context):
    """The kernels of the contract tests, compiled by this machine; its path."""
    out = context.scratch / "kernels.image"
    if out.exists():
        return out
    source = context.source / "tests/contract/kernels.cu"
    real = [] if context.simulator else ["-DREAL_GPU"]
    nvrtc = machine.find_nvrtc(context.environment)
    said = "no NVRTC"
    if nvrtc is not None:
        done = subprocess.run([sys.executable, str(machine.HERE / "nvrtc.py"), str(nvrtc), str(source), str(out),
                               context.gpu.capability, *real], env=context.environment, capture_output=True,
                              text=True, timeout=120)
        if done.returncode == 0:
            return out
        said = done.stderr.strip()[-400:]
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if context.simulator or not os.path.exists(nvcc):
        raise Failure(f"the kernels cannot be compiled: {said}")
    _must([nvcc, "-cubin", f"-arch=sm_{context.gpu.capability}", *real, "-o", out, source])
    return out


def contract_environment(context):
    environment = {**context.environment, "SLUICE_CONTRACT_IMAGE": str(kernel_image(context))}
    if context.simulator is None:
        environment["SLUICE_CONTRACT_DRIVER"] = "real"
    return environment


def run_contract(context, result, save, chosen=()):
    """Every contract test on this driver, and what differs from the simulated one."""
    section = result["contract"] = {"tests": [], "differences": []}

    def each(outcome):
        section["tests"].append(outcome)
        save()

    theirs = context.simulated_answers
    if theirs is not None and chosen:
        theirs = [outcome for outcome in theirs if outcome["program"] in chosen]
    environment = contract_environment(context)
    workers = 2 if context.simulator else context.workers
    contract.run(context.folder, environment, chosen, workers, context.deadline, each)
    if workers > 1 and not context.simulator:
        # Many look at the free memory of the GPU, which is everybody's.
        section["tests"] = contract.ask_again_alone(context.folder, environment, section["tests"], theirs or [],
                                                    context.deadline)
    if theirs is not None:
        section["differences"] = contract.differences(theirs, section["tests"])
    save()
    _count(section)
    if section["differences"]:
        names = sorted({f"{d['program']}: {d['test']}" for d in section["differences"]})
        raise Failure(f"{len(section['differences'])} differences from the simulated driver: " + "; ".join(names))
    _require_passed(section)


def _count(section):
    section["counts"] = counts = {}
    for outcome in section["tests"]:
        counts[outcome["status"]] = counts.get(outcome["status"], 0) + 1


def _require_passed(section):
    if section["counts"].keys() - {"passed", "skipped"}:
        raise Failure(f"not every test passed: {json.dumps(section['counts'])}")


def run_cases(context, result, save, chosen=()):
    """The cases of cases.py, each stopped by itself when it takes too long."""
    failed = []
    with machine.Machine(context.folder, context.scratch, context.environment, context.simulator,
                         context.small) as here:
        for name in chosen or sorted(cases.CASES):
            here.deadline = min(context.deadline, time.monotonic() + cases.LIMIT_S)
            if context.left() > 0:
                with alarm(here.deadline - time.monotonic()):
                    outcome = cases.run(name, here)
            else:
                outcome = {"name": name, "ok": False, "reason": "not run: no time left", "figures": {}}
            stop_leftovers()
            result["cases"].append(outcome)
            save()
            print(f"  {'ok' if outcome['ok'] else 'FAILED'}: {name}: "
                  f"{outcome['reason'] or json.dumps(outcome['figures'])}", flush=True)
            if not outcome["ok"]:
                failed.append(f"{name}: {outcome['reason']}")
    if failed:
        raise Failure("; ".join(failed))


# Under MPS: what crosses between processes, and what a job does in its streams.
MPS_PROGRAMS = ("lending", "words", "context_bytes", "stalls")
MPS_TESTS = ("memops", "MemOps.SynchroniseProcesses"), ("memops", "MemOps.AHostStoreReleasesAWaiterWhoseSignallerDied"), \
            ("sharing", "Sharing.AFaultInOneProcessIsNotSeenByAnother")
# Shorter than elsewhere: a fault may take the server along.
MPS_TEST_LIMIT_S = 30


def run_mps(context, result, save):
    """The same driver under MPS: the tests about other processes, and clients of two users."""
    if context.simulator:
        raise Skip("the simulated driver has no MPS server")
    section = result["mps"] = {"tests": [], "answers_that_differ_from_without": []}
    with pair.mps_server(context) as environment:
        if environment is None:
            raise Skip("no MPS server starts here: nvidia-cuda-mps-control")
        tests = {**contract_environment(context), **environment}
        section["users"] = _two_users(context, environment)
        save()
        chosen = [(context.folder / "tests" / f"contract.{program}_test", test) for program, test in MPS_TESTS]
        for name in MPS_PROGRAMS:
            program = context.folder / "tests" / f"contract.{name}_test"
            chosen += [(program, test) for test in contract.tests_of(program, tests)]
        try:
            for program, test in chosen:
                if context.left() <= 0:
                    break
                section["tests"].append(
                    contract.run_test(program, test, tests, min(MPS_TEST_LIMIT_S, context.left())))
                save()
        finally:
            # Also when the part is stopped from outside.
            section["tests"] += [contract.not_run(*item) for item in chosen[len(section["tests"]):]]
            _count(section)
    without = result.get("contract", {}).get("tests", [])
    section["answers_that_differ_from_without"] = [
        difference for difference in contract.differences(
            [o for o in without if (o["program"], o["test"]) in {(m["program"], m["test"]) for m in section["tests"]}],
            section["tests"]) if without]
    _require_passed(section)


def _two_users(context, environment):
    """Whether a client of another user runs beside one of this user."""
    # Where another user may read it.
    copy = context.scratch / "user" / "bin" / "workload"
    copy.parent.mkdir(parents=True)
    shutil.copy2(machine.program_in(context.folder, "workload"), copy)
    if (context.folder / "deps").is_dir():
        shutil.copytree(context.folder / "deps", copy.parents[1] / "deps")
    workload = str(copy)
    surroundings = {**context.environment, **environment}
    mine = subprocess.Popen([workload, "--one-shot", "--hold", "--block-bytes", "16MiB"], env=surroundings,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = []
        with alarm(60):
            for line in mine.stdout:
                said.append(line.strip())
                if said[-1] == "holding":
                    break
        if said[-1:] != ["holding"]:
            return f"the first client failed: {said[-1:]}"
        try:
            other = subprocess.run([workload, "--one-shot", "--block-bytes", "16MiB"], env=surroundings, user=65534,
                                   group=65534, extra_groups=[], capture_output=True, text=True, timeout=20)
        except subprocess.TimeoutExpired:
            return "a client of another user waits until this user's clients have ended"
        except (OSError, PermissionError) as error:
            return f"not measured: {error}"
        if other.returncode == 0:
            return "clients of two users run side by side"
        return f"a client of another user fails: {(other.stderr or other.stdout).strip()[-300:]}"
    finally:
        mine.kill()
        mine.communicate()


def run_frameworks(context, result, save):
    """PyTorch in its ways to allocate, alone and under Sluice."""
    pair.require_torch(context, Skip)
    pair.run_ways(context, result.setdefault("frameworks", []), save)


def run_pair(context, result, save):
    """Two ResNets that do not fit together: solo, one after the other, time-slicing, MPS, Sluice."""
    pair.require_torch(context, Skip)
    pair.run(context, result.setdefault("pair", {}), save)


PARTS = {"abi": run_abi, "contract": run_contract, "cases": run_cases, "mps": run_mps,
         "frameworks": run_frameworks, "pair": run_pair}


@contextlib.contextmanager
def alarm(seconds):
    """Ends whatever the block waits for with a TimeoutError. For the main thread."""
    def ring(*unused):
        raise TimeoutError(f"not over after {seconds:.0f} s")
    before, began = signal.signal(signal.SIGALRM, ring), time.monotonic()
    outer, _ = signal.setitimer(signal.ITIMER_REAL, max(1, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:  # the one around it goes on
            signal.setitimer(signal.ITIMER_REAL, max(0.01, outer - (time.monotonic() - began)))


def adopt_orphans():
    """What the programs leave behind becomes a child of this process, so that it can be ended (prctl(2))."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def children():
    """Children of this process."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == os.getpid():
                    found.append(int(entry))
        except (OSError, ValueError, IndexError):
            continue
    return found


def stop_leftovers():
    """Ends what a case left behind, so that it neither holds memory nor time of the GPU.

    Ends every child of this process: only for when nothing else runs, in no other thread either.
    """
    for _ in range(20):
        left = children()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
