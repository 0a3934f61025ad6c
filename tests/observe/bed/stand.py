# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The page before a daemon that is made up, for more jobs than a test machine runs (tests/observe/stand)."""

import subprocess

from bed.workstation import BUILD


class Stand:
    def __init__(self, jobs):
        self._process = subprocess.Popen([BUILD / "tests/page_stand", str(jobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self._process.stdout.readline().strip()

    def say(self, words):
        """"jobs N", "down" or "up"."""
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()
