# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Programs that run beside the tests, each with a log, and that are over when the tests are."""

import pathlib
import signal
import subprocess
import threading


class Process:
    """Its output goes to its log, but where lines are asked of it (`talks`)."""

    def __init__(self, name, log, argv, environment, talks):
        self.name = name
        self._log = log
        # Killed with the thread that started it, however that ends.
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *map(str, argv)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if talks else log.open("ab"), stderr=log.open("ab"), start_new_session=True,
            env=environment, text=True)

    @property
    def pid(self):
        return self._process.pid

    def ended(self):
        """Its exit code, or None."""
        return self._process.poll()

    def log(self):
        return self._log.read_text(errors="replace")

    def line(self):
        """The next line of one that talks."""
        return self._process.stdout.readline().rstrip("\n")

    def tell(self, line=""):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.line()

    def end_input(self):
        self._process.stdin.close()

    def wait(self, seconds=60):
        return self._process.wait(seconds)

    def send(self, number):
        """Nothing, where it has ended."""
        self._process.send_signal(number)

    def stop(self, number=signal.SIGTERM, seconds=20):
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if not self._process.stdin.closed:
            self._process.stdin.close()
        return self._process.returncode


class Processes:
    """All that were started, in their order. For several threads."""

    def __init__(self, logs):
        self.logs = pathlib.Path(logs)
        self.logs.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._all = []

    def start(self, name, *argv, environment, talks=False):
        process = Process(name, self.logs / f"{name}.log", argv, environment, talks)
        with self._lock:
            self._all.append(process)
        return process

    def stop_all(self):
        with self._lock:
            for process in reversed(self._all):
                process.stop()
            self._all.clear()
