# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Which function a target names."""

import pathlib
import tempfile
import unittest

from sluice_record.errors import RecordError
from sluice_record.load import load_function, split_target


class Target(unittest.TestCase):
    def test_has_a_place_and_a_name(self):
        self.assertEqual(split_target("a/b.py:make"), ("a/b.py", "make"))
        self.assertEqual(split_target("torchvision:resnet18"), ("torchvision", "resnet18"))

    def test_says_what_is_allowed(self):
        for target in ("resnet18", ":x", "x:", ""):
            with self.subTest(target), self.assertRaisesRegex(RecordError, "must be FILE.py:FUNCTION, MODULE:FUNCTION"):
                split_target(target)


class Function(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "sluice_training.py")
        pathlib.Path(folder.name, "sluice_neighbour.py").write_text("WIDTH = 3\n")
        self.file.write_text(
            "import json\nimport sluice_neighbour\nSIZE = 3\ndef make_step(batch):\n"
            "    return batch * sluice_neighbour.WIDTH\n"
        )

    def test_of_a_file_that_imports_its_neighbour(self):
        self.assertEqual(load_function(str(self.file), "make_step")(4), 12)

    def test_of_a_module(self):
        self.assertEqual(load_function("os.path", "basename")("a/b"), "b")

    def test_says_what_is_there(self):
        with self.assertRaisesRegex(RecordError, "no function 'make'; it has: make_step$"):
            load_function(str(self.file), "make")
        with self.assertRaisesRegex(RecordError, "'SIZE' of .* is no function, it is a int"):
            load_function(str(self.file), "SIZE")
        with self.assertRaisesRegex(RecordError, "no file gone.py"):
            load_function("gone.py", "make")
        with self.assertRaisesRegex(RecordError, "no module 'sluice_gone.deeper'"):
            load_function("sluice_gone.deeper", "make")

    def test_lets_a_missing_import_of_a_module_through(self):
        self.file.with_name("sluice_broken.py").write_text("import sluice_missing_library\n")
        load_function(str(self.file), "make_step")  # puts the folder on the path
        with self.assertRaisesRegex(ModuleNotFoundError, "sluice_missing_library"):
            load_function("sluice_broken", "make")


if __name__ == "__main__":
    unittest.main()
