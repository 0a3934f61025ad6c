# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Arguments that are wrong are refused before PyTorch is imported."""

import contextlib
import io
import sys
import unittest

from sluice_record.cli import main


class Arguments(unittest.TestCase):
    def refused(self, *arguments):
        said = io.StringIO()
        imported = "torch" in sys.modules  # by other tests of this process
        with contextlib.redirect_stderr(said):
            try:
                status = main(arguments)
            except SystemExit as stop:
                status = stop.code
        self.assertEqual("torch" in sys.modules, imported)
        return status, said.getvalue()

    def test_name_the_field_and_what_is_allowed(self):
        cases = {
            ("x.py:f", "--batches", "8,x"): (2, "argument --batches: '8,x' must be whole numbers with commas between"),
            ("x.py:f", "--note", "abc"): (2, "argument --note: 'abc' must be KEY=VALUE"),
            ("resnet18",): (1, "target 'resnet18': must be FILE.py:FUNCTION"),
            ("gone.py:f",): (1, "sluice-record: no file gone.py"),
            ("x.py:f", "--side", "32"): (1, "--side: only for a target torchvision, timm, transformers:MODEL"),
            ("torchvision:resnet18", "--side", "0"): (1, "--side: 0 must be at least 1"),
            ("torchvision:resnet18", "--accumulate", "0"): (1, "--accumulate: 0 must be at least 1"),
            ("x.py:f", "--accumulate", "2"): (1, "--accumulate: only for a target torchvision, timm"),
        }
        for arguments, (status, text) in cases.items():
            with self.subTest(arguments):
                got, said = self.refused(*arguments)
                self.assertEqual(got, status, said)
                self.assertIn(text, said)


if __name__ == "__main__":
    unittest.main()
