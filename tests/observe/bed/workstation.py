# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A person's machine with a simulated GPU: a daemon, trainings that share it, and the page that `sluice page` names."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / "build/release"
MACHINE = BUILD / "simgpu/demo.machine"
# The demo's GPU needs 25 ms for an iteration, which nobody could follow with the eye.
SLOWER = 8
# Of what both want at their peaks together; the demo takes as much.
POOL_FRACTION = 0.645
HANDLE = 2 << 20


def program(name):
    return str(BUILD / "bin" / name)


class Workstation:
    def __init__(self, work):
        self.work = pathlib.Path(work)
        self.runtime = self.work / "run"
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.work), "SLUICE_RUNTIME_DIR": str(self.runtime),
                            "SLUICE_SIMGPU": str(self.work / "gpu"), "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
        self._machine = self.work / "slow.machine"
        self._processes = []
        self._up = False
        self.daemon = None

    def _write_machine(self):
        def slower(match):
            return f"{match[1]} = {' + '.join(f'{float(part) * SLOWER:g}' for part in match[2].split('+'))}"
        self._machine.write_text(re.sub(r"(?m)^(cost\.\S+) = ([\d. +]+)$", slower, MACHINE.read_text()))

    def up(self):
        """A pool in which the trainings' peaks do not fit together."""
        self._write_machine()
        peaks = [self._peak(model) for model in ("small-a", "small-b")]
        pool = int(sum(peaks) * POOL_FRACTION) // HANDLE * HANDLE
        self._control("up", str(self.work / "gpu"), "--memory", str(pool + (64 << 20)), "--machine", str(self._machine))
        self._up = True
        self.start_daemon(pool)

    def _peak(self, model):
        done = subprocess.run([program("simgpu-ctl"), "run", "--memory", "1GiB", "--machine", str(self._machine), "--",
                               program("train"), "--model", model, "--iterations", "3"],
                              env=self.environment, check=True, capture_output=True, text=True, timeout=120)
        return int(re.search(r"peak_bytes=(\d+)", done.stdout)[1])

    def _control(self, *arguments):
        subprocess.run([program("simgpu-ctl"), *arguments], env=self.environment, check=True, stdout=subprocess.DEVNULL, timeout=60)

    def start_daemon(self, pool):
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        self.daemon = self._start("noded", program("sluice-noded"), "--runtime-dir", str(self.runtime), "--pool", str(pool),
                                  "--lease-unit", "256KiB", "--handle", str(HANDLE))
        deadline = time.monotonic() + 60
        while self.sluice("status", check=False).returncode != 0:
            assert time.monotonic() < deadline, (self.work / "noded.log").read_text()
            time.sleep(0.1)

    def _start(self, name, *argv):
        log = (self.work / f"{name}.log").open("ab")
        # Killed with this process, however it ends.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, start_new_session=True)
        log.close()
        self._processes.append(process)
        return process

    def train(self, name, model, seed):
        """A training as a job of Sluice, until it is stopped."""
        return self._start(name, program("sluice"), "run", "--", program("train"), "--model", model, "--seed", str(seed),
                           "--iterations", "1000000", "--learning-rate", "0.001")

    def sluice(self, *arguments, check=True):
        done = subprocess.run([program("sluice"), *arguments], env=self.environment, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def status(self):
        return json.loads(self.sluice("status", "--json").stdout)

    def page(self):
        """What `sluice page` says."""
        return self.sluice("page").stdout.strip()

    def gateway_pid(self):
        """Of the gateway that serves the page."""
        found = json.loads((self.runtime / "page.json").read_text())
        return found["pid"]

    def down(self):
        for process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with contextlib.suppress(OSError, KeyError):
            os.kill(self.gateway_pid(), signal.SIGTERM)
        if self._up:
            self._control("down", str(self.work / "gpu"))


def cpu_seconds(pid):
    """What the threads that a process has now have used so far. By the scheduler's clock: ticks are too coarse."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
