#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""tests/gpu/run on the simulated driver, carried as it is carried to a GPU, and what it says when two drivers differ.

Usage: dry_test.py RUN BUILD (whole | differences)
"""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
RUN, BUILD, WHAT = sys.argv[1:]
HERE = pathlib.Path(__file__).resolve().parent
PYTORCH = "PyTorch needs a real driver"


def go(*command):
    done = subprocess.run([sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=900)
    print(done.stdout)
    return done


def documented():
    """The simulated driver's answers in the table of questions: {(program, test): text}."""
    rows = {}
    for line in (HERE.parent / "contract" / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        # A row of the table: question, `program: Suite.Test`, simulated, real.
        named = re.fullmatch(r"`(\w+): ([\w./*]+)`", cells[1]) if len(cells) == 4 else None
        if named:
            rows[named.groups()] = cells[2]
    return rows


def check_documented(tests):
    """Every answer is documented, by its name or by a pattern, and every documented test and answer exists."""
    rows = documented()
    assert len(rows) >= 30, rows
    met = {key: set() for key in rows}
    for test in tests:
        keys = [key for key in rows if key[0] == test["program"] and fnmatch.fnmatchcase(test["test"], key[1])]
        given = {}
        for key in keys:
            met[key].add("")
            for pattern, answer in re.findall(r"`([\w.*]+)`: ([^;]+)", rows[key]):
                for question in fnmatch.filter(test["answers"], pattern):
                    met[key].add(pattern)
                    # A name goes before a pattern.
                    if "*" not in pattern or question not in given:
                        given[question] = answer.strip()
        assert given == test["answers"], \
            f"{test['program']}: {test['test']}: documented in tests/contract/README.md {given}, answered {test['answers']}"
    for key, patterns in met.items():
        wanted = {"", *(pattern for pattern, _ in re.findall(r"`([\w.*]+)`: ([^;]+)", rows[key]))}
        assert patterns == wanted, f"tests/contract/README.md names {key} {wanted - patterns}, which is not there"


def whole(scratch):
    # Stands for the vendor's header, which is not here: the part is carried and built, and finds no difference.
    (scratch / "cuda.h").write_text('#include "common/cuda/abi.h"\n')
    done = go(RUN, "--build", BUILD, "--dry", "--cuda-include", scratch, "--json", scratch / "dry.json", "--markdown", scratch / "dry.md")
    result = json.loads((scratch / "dry.json").read_text())
    parts = {part["name"]: part for part in result["parts"]}
    assert done.returncode == 0, [part for part in result["parts"] if not part["ok"]]
    assert result["simulated"] and result["schema"] == 2, result
    assert list(parts) == ["abi", "contract", "cases", "mps", "frameworks", "pair"], parts
    assert parts["abi"]["ok"] and "0 differ" in result["abi"]["said"][-1], result
    for name in ("frameworks", "pair"):
        assert parts[name]["skipped"] and PYTORCH in parts[name]["reason"], parts[name]
    assert parts["contract"]["ok"] and parts["cases"]["ok"] and not parts["contract"]["skipped"], parts
    assert result["contract"]["differences"] == [] and result["contract"]["counts"]["passed"] > 200, result["contract"]
    assert [case["name"] for case in result["cases"]] == ["credit_sweep", "crowded", "demo", "launch_ahead", "limits"], result["cases"]
    text = (scratch / "dry.md").read_text()
    assert "Differences from the simulated driver: none" in text and PYTORCH in text, text
    check_documented(result["contract"]["tests"])


def differences(scratch):
    """Another answer, another ending, a test that one side lacks: each is named, and the run fails."""
    pack = scratch / "pack"
    assert go(RUN, "--build", BUILD, "--pack", pack, "--only", "lending").returncode == 0
    command = (pack / "run", "--simulated", BUILD, "--only", "lending", "--json", scratch / "a.json", "--markdown",
               scratch / "a.md")
    assert go(*command).returncode == 0

    answers = json.loads((pack / "simulated.json").read_text())
    tests = {test["test"]: test for test in answers}
    zero = tests["LendingTest.WhatNewMemoryContains"]
    assert zero["answers"]["new_memory_is_zero"] == "yes", zero
    zero["answers"]["new_memory_is_zero"] = "no"
    tests["LendingTest.AnImportedHandleIsExportedAgain"].update(status="failed", message="refused")
    answers.append({**zero, "test": "LendingTest.OnlyHere", "answers": {}})
    # What was skipped over there is no difference, whatever it said.
    tests["LendingTest.ADescriptorAloneKeepsMemory"].update(status="skipped", answers={})
    (pack / "simulated.json").write_text(json.dumps(answers))
    done = go(*command)
    assert done.returncode == 1, done
    found = {(d["test"], d["question"], d["simulated"], d["real"])
             for d in json.loads((scratch / "a.json").read_text())["contract"]["differences"]}
    assert found == {("LendingTest.WhatNewMemoryContains", "new_memory_is_zero", "no", "yes"),
                     ("LendingTest.AnImportedHandleIsExportedAgain", "how the test ends", "failed: refused", "passed"),
                     ("LendingTest.OnlyHere", "the test itself", "passed", "was not asked for")}, found
    text = (scratch / "a.md").read_text()
    assert "| lending: LendingTest.WhatNewMemoryContains | new_memory_is_zero | no | yes |" in text, text
    assert "3 differences" in done.stdout and "lending: LendingTest.OnlyHere" in done.stdout, done.stdout


with tempfile.TemporaryDirectory() as folder:
    {"whole": whole, "differences": differences}[WHAT](pathlib.Path(folder))
