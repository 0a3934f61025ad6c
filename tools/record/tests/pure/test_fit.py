# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The trace through two recordings, and what is refused."""

import dataclasses
import unittest

from sluice_record.errors import RecordError
from sluice_record.fit import fit, verify
from sluice_record.recording import Alloc, Cost, Free, Linear, Op, Recording, Sequence


def recording(batch, *, growth=lambda n: 64 * n, flops=lambda n: 6 * n, name="mm", kinds=("input", "transient")):
    """One operator that makes a block of `growth` bytes from an input."""
    events = (Alloc(1), Op(name, "forward", (0,), (1,)), Free(1))
    costs = (Cost(flops(batch), 100 + 8 * batch),)
    return Recording(batch, Sequence(kinds, events), (12 * batch, growth(batch)), costs)


class Fit(unittest.TestCase):
    def test_gives_back_every_number_at_every_batch(self):
        small, large = recording(8, growth=lambda n: 100 + 3 * n), recording(16, growth=lambda n: 100 + 3 * n)
        trace = fit(small, large, {"model": "m"})
        self.assertEqual(trace.sizes, (Linear(0, 12), Linear(100, 3)))
        self.assertEqual((trace.costs[0].flops, trace.costs[0].moved), (Linear(0, 6), Linear(100, 8)))
        self.assertEqual(trace.peak(20), 160)
        self.assertEqual(trace.held("input", 20), 240)
        verify(trace, small, recording(13, growth=lambda n: 100 + 3 * n))

    def test_takes_the_larger_batch_first(self):
        self.assertEqual(fit(recording(16), recording(8), {}).sizes, fit(recording(8), recording(16), {}).sizes)

    def test_names_a_number_that_no_line_gives(self):
        for growth in (lambda n: n * n, lambda n: 64 * n - 64, lambda n: 1000 - n, lambda n: n + n // 3):
            with self.assertRaisesRegex(RecordError, r"bytes of block 1 \(transient, first used by operator 0 mm\)"):
                fit(recording(8, growth=growth), recording(16, growth=growth), {})
        with self.assertRaisesRegex(RecordError, r"operations of operator 0 mm \(forward\): 64 at batch 8"):
            fit(recording(8, flops=lambda n: n * n), recording(16, flops=lambda n: n * n), {})

    def test_names_where_the_sequences_part(self):
        with self.assertRaisesRegex(RecordError, "event 1 is operator mm .* batch 8, operator bmm .* batch 16, after"):
            fit(recording(8), recording(16, name="bmm"), {})
        short = recording(16)
        short = dataclasses.replace(short, sequence=Sequence(short.sequence.kinds, short.sequence.events[:2]))
        with self.assertRaisesRegex(
            RecordError, "free of block 1 .512 bytes. at batch 8, the end at batch 16, after operator 0"
        ):
            fit(recording(8), short, {})
        with self.assertRaisesRegex(RecordError, "0 persistent and 1 input blocks at batch 8, 1 and 0 at batch 16"):
            fit(recording(8), recording(16, kinds=("persistent", "transient")), {})

    def test_tells_events_apart_that_look_alike(self):
        other = recording(16)
        events = (Alloc(1), Op("mm", "forward", (), (1,)), Free(1))
        with self.assertRaisesRegex(RecordError, r"reads=\(0,\).* at batch 8, .*reads=\(\)"):
            fit(recording(8), dataclasses.replace(other, sequence=Sequence(other.sequence.kinds, events)), {})


class Verify(unittest.TestCase):
    def test_names_what_leaves_the_line_later(self):
        def late(n):
            return max(64 * n, 1600)

        trace = fit(recording(8, growth=late), recording(16, growth=late), {})
        with self.assertRaisesRegex(RecordError, "1 of 4 numbers .* batch 32. .*block 1 .* fit says 1600, .* 2048"):
            verify(trace, recording(8, growth=late), recording(32, growth=late))

    def test_names_another_sequence(self):
        trace = fit(recording(8), recording(16), {})
        with self.assertRaisesRegex(RecordError, "at batch 32"):
            verify(trace, recording(8), recording(32, name="bmm"))


if __name__ == "__main__":
    unittest.main()
