#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What tools/record writes is read by the project's reader; what is malformed is refused by its line.

Usage: reads_test.py READER, with sluice_record on PYTHONPATH
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from sluice_record.recording import Alloc, Free, Linear, LinearCost, Op, Sequence, Trace
from sluice_record.text import MAX_NUMBER, trace_text

READER = sys.argv.pop()


def small_trace():
    events = (
        Alloc(2),
        Op("addmm", "forward", (0, 1), (2,)),
        Alloc(3),
        Op("mm", "backward", (2,), (3,)),
        Free(2),
        Op("_foreach_add_.List", "optimizer", (0, 3), (0,)),
        Free(3),
    )
    cost = LinearCost(Linear(0, 7), Linear(5, MAX_NUMBER >> 40))
    sequence = Sequence(("persistent", "input", "transient", "transient"), events)
    sizes = (Linear(4096, 0), Linear(0, 512), Linear(16, 64), Linear(4096, 0))
    return Trace({"model": "small", "empty": ""}, sequence, sizes, (cost, cost, cost))


class Reader(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.trace")
            path.write_text(text, encoding="ascii")
            return subprocess.run([READER, path], capture_output=True, text=True, timeout=30, check=False)

    def test_takes_what_is_written(self):
        done = self.read(trace_text(small_trace()))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            done.stdout,
            f"3 operators, 4 blocks, peak {small_trace().peak(32)} bytes at batch 32\n",
        )

    def test_names_the_line_of_a_fault(self):
        text = trace_text(small_trace())
        lines = text.splitlines()
        faults = {
            "block 1 input 0 512": "block 1 output 0 512",
            "alloc 3": "alloc 4",
            "op 1 mm backward 0 7 5 8192 r=2 w=3": "op 1 mm backward 0 -7 5 8192 r=2 w=3",
            "free 2": "free 1",
            "op 2 _foreach_add_.List optimizer 0 7 5 8192 r=0,3 w=0": "op 2 add optimizer 0 7 5 8192 r=0,2 w=0",
        }
        for right, wrong in faults.items():
            with self.subTest(wrong):
                number = lines.index(right) + 1
                done = self.read(text.replace(f"{right}\n", f"{wrong}\n"))
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(f"a.trace: line {number}: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
