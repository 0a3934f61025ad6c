# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A second node, for what should not happen to the first one: each of its simulated GPUs is for one failure."""

import glob
import pathlib

from support.processes import until

from .node import BUILD, MIB, Node, program

GPUS = 8
GPU_BYTES = 48 * MIB
POOL = 4 * MIB
UNIT = "32KiB"
# What daemons wait for others' iterations and for memory, where a failure takes longer than usual.
NEVER = ("--patience", "1000000", "--lease-wait", "1000000")


class FailingNode(Node):
    name = "failing"

    def __init__(self, work):
        super().__init__(work)
        self._with_clocks = []

    def up(self):
        self.control("up", self.work / "gpu", "--gpus", GPUS, "--memory", GPU_BYTES)
        self._up = True
        self.runtime.mkdir(mode=0o700)
        # Daemons come one by one, and until then a folder is a GPU whose daemon does not answer.
        (self.runtime / "0").mkdir(mode=0o700)
        self.plugin_port = self.start_plugin("refuse the node is full")
        self.gateway_port = self.start_gateway()

    def down(self):
        super().down()
        # What libfaketime leaves behind of a program that was stopped.
        for daemon in self._with_clocks:
            for name in (f"faketime_shm_{daemon.pid}", f"sem.faketime_sem_{daemon.pid}"):
                pathlib.Path("/dev/shm", name).unlink(missing_ok=True)

    def daemon(self, gpu, *flags, keeper="off", environment=None):
        """Of one of its GPUs. Without a keeper, mostly: when it is over, it is over."""
        return self.start_daemon(gpu, POOL, UNIT, "--keeper", keeper, *flags, environment=environment)

    def holder(self, name, gpu, *arguments, limit="512KiB"):
        """A job that has allocated a block and computes nothing."""
        job = self.workload(name, gpu, "--one-shot", "--hold", *arguments, flags=("--limit", limit, "--request", limit))
        until(f"{name} holds", lambda: "holding" in job.log(), 60)
        return job

    def stranger(self, name, gpu, *arguments):
        """A program without the library."""
        process = self.start(name, BUILD / "tests/programs/workload", "--one-shot", "--hold", *arguments,
                             environment={"CUDA_VISIBLE_DEVICES": str(gpu)})
        until(f"{name} holds", lambda: "holding" in process.log(), 60)
        return process

    def process_of(self, name, gpu):
        """The process of a job, once it has a session."""
        return until(f"{name} has a session", lambda: [job["pid"] for job in self.status(gpu)["jobs"] if name in job["name"] and job["pid"] > 0], 60)[0]

    def daemon_with_clock(self, gpu):
        """Its clock goes by the file that this gives: seconds that it is ahead, and how fast it goes."""
        file = self.work / f"clock-{gpu}"
        file.write_text("+0\n")
        (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        self._with_clocks.append(self.daemon(gpu, *NEVER, environment={
            "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1"}))
        return file
