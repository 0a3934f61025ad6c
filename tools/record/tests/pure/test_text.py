# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The text of a trace, and what the format cannot hold."""

import dataclasses
import unittest

from sluice_record.errors import RecordError
from sluice_record.recording import Alloc, Free, Linear, LinearCost, Op, Sequence, Trace
from sluice_record.text import MAX_NUMBER, trace_text

SIZE = Linear(16, 64)


def trace(name="add.Tensor", header=None, size=SIZE):
    events = (Alloc(2), Op(name, "backward", (0, 1), (2,)), Free(2))
    sequence = Sequence(("persistent", "input", "transient"), events)
    sizes = (Linear(4, 0), Linear(0, 8), size)
    return Trace(header or {"model": "m"}, sequence, sizes, (LinearCost(Linear(0, 2), Linear(4, 8)),))


class Text(unittest.TestCase):
    def test_is_the_format(self):
        self.assertEqual(
            trace_text(trace(header={"model": "m", "note": "a = b"})),
            "# sluice-trace 1\n# model=m\n# note=a = b\n"
            "block 0 persistent 4 0\nblock 1 input 0 8\nblock 2 transient 16 64\n"
            "alloc 2\nop 0 add.Tensor backward 0 2 4 8 r=0,1 w=2\nfree 2\n",
        )

    def test_writes_empty_lists(self):
        events = (Op("fill", "forward", (), (0,)), Op("sum", "forward", (0,), ()))
        bare = dataclasses.replace(
            trace(), sequence=Sequence(("persistent",), events), sizes=(Linear(4, 0),), costs=trace().costs * 2
        )
        self.assertIn(" r= w=0\n", trace_text(bare))
        self.assertIn(" r=0 w=\n", trace_text(bare))

    def test_names_what_the_format_cannot_hold(self):
        cases = {
            "header key 'a b'": trace(header={"a b": "c"}),
            "header model: 'é' must be of printable ASCII": trace(header={"model": "é"}),
            "header model: 'a.nb' must be": trace(header={"model": "a\nb"}),
            "operator 0 'my op': a name must be": trace(name="my op"),
            "bytes of block 2: 9007199254740993 must be 0 to": trace(size=Linear(MAX_NUMBER + 1, 0)),
            "bytes of block 2: -1 must be": trace(size=Linear(-1, 0)),
            "257 header lines, the format allows 256": trace(header={f"k{i}": "" for i in range(257)}),
        }
        for text, wrong in cases.items():
            with self.subTest(text), self.assertRaisesRegex(RecordError, text.replace("a.nb", r"a\\nb")):
                trace_text(wrong)


if __name__ == "__main__":
    unittest.main()
