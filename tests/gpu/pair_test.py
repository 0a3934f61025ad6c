#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The part `pair` with a stand-in for PyTorch, on the simulated GPU: every way is run, told and compared; what a speed is.

Usage: pair_test.py BUILD
"""
import os
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machine  # noqa: E402
import pair  # noqa: E402
import parts  # noqa: E402
import report  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
# What torch_job.py prints, by a program that needs nothing and no GPU: an iteration lasts 5 ms.
STAND_IN = """
import json, os, sys, time
seed, when = sys.argv[sys.argv.index("--seed") + 1], sys.argv[sys.argv.index("--when") + 1]
open(when + ".loaded", "w").close()
while not os.path.exists(when):
    time.sleep(0.001)
ends = []
for _ in range(20):
    time.sleep(0.005)
    ends.append(time.monotonic())
bad = seed == os.environ.get("WRONG_SEED") and "sluice" in os.environ.get("LD_PRELOAD", "")
print(json.dumps({"iteration_s": 0.005, "iterations_s": 0.1, "ends_s": ends, "peak_reserved_bytes": 40 << 20,
                  "losses": [seed + ("?" if bad else "")]}))
"""
RESULT = {"gpu": "none", "simulated": True, "date": "", "commit": "", "driver": "", "machine": {}, "skipped": "", "parts": [],
          "cases": []}


def run(scratch, environment):
    (scratch / "torch_job.py").write_text(STAND_IN)
    machine.HERE, pair.HANDLE = scratch, 2 * machine.MIB
    machine.Machine.ballast = pair.contextlib.contextmanager(lambda here: iter([NoBallast()]))
    context = parts.Context(BUILD, BUILD, scratch, environment, None, BUILD, True, time.monotonic() + 300)
    context.torch_environment = {**environment, "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
    section = {}
    try:
        pair.run(context, section, lambda: None)
    except pair.Failure as failure:
        return section, str(failure)
    return section, ""


class NoBallast:
    def leave(self, free_bytes):
        return free_bytes


def speeds():
    """Two jobs that get half of the GPU each do what one after the other does, whichever part of the time is asked for."""
    alone = [{"iteration_s": 0.1}, {"iteration_s": 0.05}]
    halves = [{"ends_s": [0.2 * i for i in range(1, 101)]}, {"ends_s": [0.1 * i for i in range(1, 151)]}]
    assert pair.speed(halves, alone) == pair.speed(halves, alone, 0.5) == 1, halves
    # The second half alone at full speed.
    ends = [0.2 * i for i in range(1, 51)]
    ends += [ends[-1] + 0.1 * i for i in range(1, 101)]
    both = [{"ends_s": ends}, {"ends_s": ends}]
    assert 1.6 < pair.speed(both, [alone[0]] * 2, 0.75) <= 2, pair.speed(both, [alone[0]] * 2, 0.75)
    # Of jobs that were never under way together there is none.
    assert pair.speed([{"ends_s": [0.1 * i for i in range(1, 20)]}, {"ends_s": [9 + i for i in range(20)]}], alone) is None


def main():
    speeds()
    environment = {**machine.real_environment(os.environ), "PATH": "/usr/bin:/bin"}
    with tempfile.TemporaryDirectory() as folder:
        section, failure = run(pathlib.Path(folder), environment)
    assert failure == "", failure
    ways = ["time_slicing", *(f"sluice_{policy}" for policy in pair.POLICIES), "time_slicing_in_the_pools_memory"]
    for way in ways:
        assert section[way]["all_finished"] and section[way]["same_bits"] and 0.5 < section[way]["speed"] <= 2.1, (way, section)
        assert "losses" not in section[way]["jobs"][0] and "ends_s" not in section[way]["jobs"][0], section
    told = report.markdown({**RESULT, "pair": section})
    assert all(f"Sluice, `{policy}`, in the pool | " in told for policy in pair.POLICIES) and "Alone in the pool" in told, told
    assert "not_run" in section["mps"] and len(section["sluice_alone"]) == 2, section
    assert not any(key.endswith("_mps") for key in section), section
    with tempfile.TemporaryDirectory() as folder:
        section, failure = run(pathlib.Path(folder), {**environment, "WRONG_SEED": "2"})
    assert "sluice_temporal" in failure and not section["sluice_temporal"]["same_bits"], failure


main()
