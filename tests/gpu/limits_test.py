#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A contract test that hangs, crashes or has no time left is told as that, and the others are run all the same; a part
with such a test fails; no part hangs for ever or leaves processes behind."""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import contract  # noqa: E402
import pair  # noqa: E402
import parts  # noqa: E402

# Stands for a program of GoogleTest.
PROGRAM = """#!/bin/sh
case $1 in
  --gtest_list_tests) printf 'Suite.\\n  Crashes\\n  Hangs\\n  Passes\\n' ;;
  --gtest_filter=Suite.Crashes) echo 'last words'; kill -SEGV $$ ;;
  --gtest_filter=Suite.Hangs) exec sleep 600 ;;
  *) echo '{"testsuites": [{"testsuite": [{"name": "Passes", "result": "COMPLETED", "answer.a": "b"}]}]}' \\
       >"${2#--gtest_output=json:}" ;;
esac
"""

# Fails the first time, as if others had been beside it.
SECOND_TIME = """#!/bin/sh
case $1 in --gtest_list_tests) printf 'Suite.\\n  T\\n'; exit ;; esac
test -e "$LEFT_BEHIND" || failures='"failures": [{"failure": "not alone"}],'
touch "$LEFT_BEHIND"
echo "{\\"testsuites\\": [{\\"testsuite\\": [{\\"name\\": \\"T\\", $failures \\"result\\": \\"COMPLETED\\"}]}]}" \\
  >"${2#--gtest_output=json:}"
"""

# Every odd test leaves a process behind and crashes, or hangs; an even one fails if it finds the one before it alive.
BESIDE_CRASHES = """#!/bin/sh
case $1 in
  --gtest_list_tests) echo Suite.; seq -f '  T%g' 0 39; exit ;;
  --gtest_filter=*[13579]) sleep 600 & echo $! >"$LEFT_BEHIND"; case $1 in *T21) wait ;; esac; exit 3 ;;
esac
sleep 0.05
left=$(cat "$LEFT_BEHIND" 2>/dev/null) && kill -0 "$left" 2>/dev/null && failures='"failures": [{"failure": "not alone"}],'
echo "{\\"testsuites\\": [{\\"testsuite\\": [{\\"name\\": \\"T\\", $failures \\"result\\": \\"COMPLETED\\"}]}]}" \\
  >"${2#--gtest_output=json:}"
"""


@contextlib.contextmanager
def on_a_gpu(text, seconds=60):
    """What the parts get on a real GPU, with the program `text` as the only one of the contract tests."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "tests" / "contract.fake_test"
        program.parent.mkdir()
        program.write_text(text)
        program.chmod(0o755)
        (folder / "kernels.image").touch()
        yield parts.Context(folder, None, folder, {**os.environ, "LEFT_BEHIND": f"{folder}/left"}, None, None, True,
                            time.monotonic() + seconds)


def failure_of(part, context, result):
    """Why the part fails; empty if it does not."""
    try:
        part(context, result, lambda: None)
    except parts.Failure as failure:
        return str(failure)
    return ""


contract.TEST_LIMIT_S = 2
with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder) / "tests" / "contract.fake_test"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    seen = []
    outcomes = contract.run(pathlib.Path(folder), os.environ, each=seen.append)
    assert [(o["test"], o["status"]) for o in outcomes] == [
        ("Suite.Crashes", "crashed"), ("Suite.Hangs", "timeout"), ("Suite.Passes", "passed")], outcomes
    assert "last words" in outcomes[0]["message"] and outcomes[2]["answers"] == {"a": "b"}, outcomes
    assert seen == outcomes
    late = contract.run(pathlib.Path(folder), os.environ, deadline=time.monotonic() - 1)
    assert {o["status"] for o in late} == {"not run"}, late
    # Interrupted, it neither runs the others nor leaves the one under way.
    contract.TEST_LIMIT_S, began = 60, time.monotonic()
    with contextlib.suppress(TimeoutError), parts.alarm(3):
        contract.run(pathlib.Path(folder), os.environ, each=seen.append)
    assert time.monotonic() - began < 30 and len(seen) <= 4 and parts.children() == [], (seen, parts.children())
    contract.TEST_LIMIT_S = 2

# The part as it is on a GPU: what crashed or hangs is ended with all it started before the next one, and nothing else is.
parts.adopt_orphans()
with on_a_gpu(BESIDE_CRASHES) as context:
    said = failure_of(parts.run_contract, context, result := {})
    ended = [(o["test"], o["status"], o["message"]) for o in result["contract"]["tests"]]
    assert ended == [(f"Suite.T{i}", *(("passed", "") if i % 2 == 0 else ("timeout", "not over after 2 s") if i == 21
                                       else ("crashed", "exit 3: no output"))) for i in range(40)], ended
    assert "not every test passed" in said, said
    assert parts.children() == [], parts.children()

# The part `mps` as well: it is as good as its tests, and says which of them it did not come to.
@contextlib.contextmanager
def a_server(context):
    yield {"UNDER_MPS": "1"}


def under_mps(text, seconds=60, limit_s=60):
    """Why the part fails, and its section."""
    with on_a_gpu(text, seconds) as context:
        try:
            with parts.alarm(limit_s):
                return failure_of(parts.run_mps, context, result := {}), result["mps"]
        except TimeoutError:
            return "stopped", result["mps"]


pair.mps_server, parts._two_users = a_server, lambda *unused: "not measured"
parts.MPS_TESTS, parts.MPS_PROGRAMS, parts.MPS_TEST_LIMIT_S = (("fake", "Suite.Passes"),), ("fake",), 2
WELL = PROGRAM.replace("Crashes\\n  Hangs\\n  Passes", "Passes\\n  AsWell")
assert WELL != PROGRAM
FAILS = WELL.replace('"COMPLETED"', '"COMPLETED", "failures": [{"failure": "no"}]')
for text, seconds, statuses in ((WELL, 60, ["passed"] * 3), (FAILS, 60, ["failed"] * 3), (WELL, -1, ["not run"] * 3),
                                (PROGRAM, 60, ["passed", "crashed", "timeout", "passed"])):
    said, section = under_mps(text, seconds)
    assert [o["status"] for o in section["tests"]] == statuses, section
    assert section["counts"] == {status: statuses.count(status) for status in statuses}, section
    bad = [status for status in statuses if status != "passed"]
    assert all(f'"{status}": {bad.count(status)}' in said for status in bad) and bool(said) == bool(bad), said
parts.MPS_TEST_LIMIT_S = 30
said, section = under_mps(PROGRAM, limit_s=3)
assert said == "stopped" and [o["status"] for o in section["tests"]] == ["passed", "crashed", "not run", "not run"], section
assert parts.children() == [], parts.children()

# What hangs is left, and the longer limit around the shorter one still holds.
rang = []
try:
    with parts.alarm(2):
        try:
            with parts.alarm(1):
                time.sleep(60)
        except TimeoutError:
            rang.append("inner")
        time.sleep(60)
except TimeoutError:
    rang.append("outer")
assert rang == ["inner", "outer"], rang

# What was started and left behind is ended.
orphan = subprocess.run(["sh", "-c", "sleep 600 >/dev/null & echo $!"], stdout=subprocess.PIPE, text=True, check=True)
assert os.path.exists(f"/proc/{orphan.stdout.strip()}")
parts.stop_leftovers()
assert not os.path.exists(f"/proc/{orphan.stdout.strip()}")

# With several at once a failure is asked again alone; with one at a time it stands.
for workers, status in ((1, "failed"), (2, "passed")):
    with on_a_gpu(SECOND_TIME) as context:
        context.workers = workers
        result = {}
        said = failure_of(parts.run_contract, context, result)
    assert [o["status"] for o in result["contract"]["tests"]] == [status], result
    assert bool(said) == (status == "failed"), said
