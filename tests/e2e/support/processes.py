# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Programs that the tests start beside the cluster, each with a log, and waiting for things to come true."""

import os
import pathlib
import signal
import subprocess
import time


def until(what, condition, seconds=60, every=0.1):
    """Waits until `condition()` is true and returns what it gave. The time only ends a test that fails."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        found = condition()
        if found:
            return found
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        # A look costs what a program costs to start, kubectl as much as a sixth of a second. Whoever looks without
        # a break takes a processor from what it waits for, and from other stages of .ci/run.
        time.sleep(max(every, min(1, 2 * (now - began))))


class Processes:
    """By name. An environment of their own, so that nothing depends on who runs the tests."""

    def __init__(self, folder, path):
        self.logs = pathlib.Path(folder)
        self.logs.mkdir(parents=True, exist_ok=True)
        self._environment = {"PATH": path, "HOME": str(self.logs)}
        self._running = {}

    def start(self, name, *argv, environment=None):
        with open(self.logs / f"{name}.log", "ab") as log:
            self._running[name] = subprocess.Popen(
                [str(argument) for argument in argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**self._environment, **(environment or {})})
        return self._running[name]

    def pid(self, name):
        return self._running[name].pid

    def stop(self, name, number=signal.SIGTERM, seconds=20):
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self):
        for name in reversed(list(self._running)):
            self.stop(name)

    def log(self, name):
        file = self.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""


def descendants_named(name, *words):
    """Process ids of programs with this file name, of this PID namespace, and these words in a row in their command."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            argv = pathlib.Path("/proc", entry, "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        in_a_row = any(argv[at:at + len(words)] == list(words) for at in range(len(argv)))
        if os.path.basename(argv[0]) == name and in_a_row:
            found.append(int(entry))
    return sorted(found)
