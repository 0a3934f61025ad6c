# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Runs the contract tests one by one on a driver, and compares what two drivers said.

Each test is a process of its own with a time limit of its own: on a real driver a fault ends the context of the
process, and a call that hangs must not take the others along.
"""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

TEST_LIMIT_S = 60
GROUP_END_LIMIT_S = 10
# A skip says which driver it needs, and why (answers.cc).
SKIP_MARK = "skipped on "


def programs(folder):
    return sorted((folder / "tests").glob("contract.*_test"))


def tests_of(program, environment):
    """The names of a program's tests, without running any."""
    done = subprocess.run([str(program), "--gtest_list_tests"], env=environment, capture_output=True, text=True,
                          timeout=TEST_LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{program.name}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    names, suite = [], ""
    for line in done.stdout.splitlines():
        line = line.split("#")[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  ") and suite:
            names.append(suite + line.strip())
    return names


def run_test(program, name, environment, limit_s, stop=None):
    """One test by itself. What it started ends with it; `stop` (a threading.Event) ends it early."""
    outcome = _outcome(program, name, "failed", "")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sluice-contract-") as scratch:
        file, said = pathlib.Path(scratch) / "result.json", pathlib.Path(scratch) / "output"
        # Into a file, not a pipe: what the test leaves behind would hold that open. A session of its own, by which it
        # is ended without touching what another thread runs.
        with said.open("wb") as out:
            process = subprocess.Popen([str(program), f"--gtest_filter={name}", f"--gtest_output=json:{file}"],
                                       env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, cwd=scratch, start_new_session=True)
        try:
            ended = _has_ended(process.pid, began + max(1, limit_s), stop or threading.Event())
        finally:
            outcome["seconds"] = round(time.monotonic() - began, 3)
            _end_group(process)
        if not ended:
            outcome.update(status="timeout", message=f"not over after {limit_s:.0f} s")
            return outcome
        output = said.read_text(errors="replace")
        try:
            _read(json.loads(file.read_text()), outcome, output)
        except (OSError, ValueError):
            last = (output.strip().splitlines() or ["no output"])[-1]
            outcome.update(status="crashed", message=f"exit {process.returncode}: {last}")
    return outcome


def not_run(program, name):
    return _outcome(program, name, "not run", "no time left")


def _outcome(program, name, status, message):
    return {"program": program.name.removeprefix("contract.").removesuffix("_test"), "test": name, "status": status,
            "message": message, "answers": {}, "measured": {}, "seconds": 0.0}


def _has_ended(pid, until, stop):
    """Waits for a child without reaping it: until then its number cannot become another process's."""
    pause_s = 0.001
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= until or stop.wait(pause_s):
            return False
        pause_s = min(2 * pause_s, 0.02)
    return True


def _end_group(process):
    """Ends the test and all it started, and waits until they hold nothing any more."""
    # A process inside a driver's call may take its time to die, or never do so: then it is not waited for.
    until = time.monotonic() + GROUP_END_LIMIT_S
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(GROUP_END_LIMIT_S)
        # The others are children of this process once theirs have ended (parts.adopt_orphans).
        while time.monotonic() < until:
            if os.waitpid(-process.pid, os.WNOHANG) == (0, 0):
                time.sleep(0.001)
    except (subprocess.TimeoutExpired, ChildProcessError, ProcessLookupError):
        pass


def _read(report, outcome, output):
    entries = [entry for suite in report["testsuites"] for entry in suite["testsuite"]]
    if len(entries) != 1:
        raise ValueError(f"{len(entries)} results")
    entry = entries[0]
    for key, value in entry.items():
        if key.startswith("answer."):
            outcome["answers"][key.removeprefix("answer.")] = value
        elif key.startswith("measured."):
            outcome["measured"][key.removeprefix("measured.")] = float(value)
    if entry.get("failures"):
        # All of them: a run on a real GPU is dear, and the first one rarely says it all.
        said = [" ".join(failure["failure"].split())[:400] for failure in entry["failures"][:10]]
        outcome["message"] = "; also: ".join(said)
    elif entry["result"] == "SKIPPED":
        said = [line for line in output.splitlines() if line.startswith(SKIP_MARK)]
        outcome.update(status="skipped", message=said[0] if said else "skipped")
    else:
        outcome["status"] = "passed"


def run(folder, environment, chosen=(), workers=1, deadline=None, each=lambda outcome: None):
    """All tests of all programs, or those of the `chosen` programs; `each` is called after every one."""
    wanted = [program for program in programs(folder)
              if not chosen or program.name.removeprefix("contract.").removesuffix("_test") in chosen]
    if not wanted:
        raise RuntimeError(f"{folder / 'tests'}: no contract tests")
    todo = [(program, name) for program in wanted for name in tests_of(program, environment)]
    outcomes, stop = [], threading.Event()

    def one(item):
        left = TEST_LIMIT_S if deadline is None else min(TEST_LIMIT_S, deadline - time.monotonic())
        if left <= 0:
            return not_run(*item)
        return run_test(*item, environment, left, stop)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            for outcome in pool.map(one, todo):
                outcomes.append(outcome)
                each(outcome)
        finally:
            # Interrupted: the tests are in sessions of their own, and do not hear of it.
            stop.set()
    return outcomes


def ask_again_alone(folder, environment, outcomes, simulated, deadline):
    """`outcomes` of tests that ran side by side; those that failed or differ are put again, one at a time."""
    doubtful = {(found["program"], found["test"]) for found in differences(simulated, outcomes)}
    answered = []
    for outcome in outcomes:
        left = min(TEST_LIMIT_S, deadline - time.monotonic())
        if left > 0 and (outcome["status"] in ("failed", "timeout", "crashed") or
                         (outcome["program"], outcome["test"]) in doubtful):
            program = folder / "tests" / f"contract.{outcome['program']}_test"
            outcome = run_test(program, outcome["test"], environment, left)
        answered.append(outcome)
    return answered


def differences(simulated, real):
    """Where two drivers do not agree: a test that ends otherwise, or another answer to the same question.

    What one of the two cannot be asked (skipped, not run) is no difference.
    """
    found = []
    theirs = {(outcome["program"], outcome["test"]): outcome for outcome in simulated}
    for outcome in real:
        key = (outcome["program"], outcome["test"])
        other = theirs.pop(key, None)
        if other is None:
            found.append(_difference(key, "the test itself", "does not exist", outcome["status"]))
            continue
        if {outcome["status"], other["status"]} & {"skipped", "not run"}:
            continue
        if outcome["status"] != other["status"]:
            found.append(_difference(key, "how the test ends", _ending(other), _ending(outcome)))
        for question in sorted(outcome["answers"].keys() | other["answers"].keys()):
            ours, its = other["answers"].get(question), outcome["answers"].get(question)
            # Without an answer there is a failure, which was named above.
            if ours is not None and its is not None and ours != its:
                found.append(_difference(key, question, ours, its))
    found += [_difference(key, "the test itself", outcome["status"], "was not asked for")
              for key, outcome in theirs.items()]
    return found


def _ending(outcome):
    return outcome["status"] + (f": {outcome['message']}" if outcome["message"] else "")


def _difference(key, question, simulated, real):
    return {"program": key[0], "test": key[1], "question": question, "simulated": simulated, "real": real}
