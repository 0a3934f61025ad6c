# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Simulated GPUs of the node, and how containers come to them in the place of NVIDIA's runtime."""

import contextlib
import json
import pathlib
import shutil
import subprocess

from support.images import REPOSITORY

MIB = 1 << 20


class SimulatedGpus:
    """On the node below `folder`: the driver in driver/, the GPUs in gpus/. Containers have it at the same path.
    `environment` shows the second GPU alone, as NVIDIA's runtime would; `all` shows all of them."""

    def __init__(self, folder, count, memory):
        self.folder = pathlib.Path(folder)
        self.gpus = self.folder / "gpus"
        driver = self.folder / "driver"
        shutil.copytree(REPOSITORY / "build/release/simgpu", driver, symlinks=True,
                        ignore=shutil.ignore_patterns("CMakeFiles", "*.cmake", "*.a", "nvrtc"))
        (self.folder / "machine").write_text("")
        # Pods of any user come here.
        self.folder.chmod(0o755)
        self._control("up", self.gpus, "--gpus", str(count), "--memory", str(memory), "--machine", self.folder / "machine")
        self.environment = {"SLUICE_SIMGPU": f"{self.gpus}/1", "LD_LIBRARY_PATH": str(driver)}
        self.all = {**self.environment, "SLUICE_SIMGPU": str(self.gpus)}

    def train_without_sluice(self, iterations, seed):
        """What the example trainer says on the first GPU, which Sluice does not have."""
        return subprocess.run(
            [REPOSITORY / "build/release/bin/train", "--model", "small-a", "--iterations", str(iterations), "--seed", str(seed)],
            capture_output=True, text=True, check=True,
            env={**self.all, "PATH": "/usr/bin:/bin"}).stdout

    @contextlib.contextmanager
    def other(self, memory):
        """One more machine with one GPU, for as long as the block takes: what shows it instead of ours."""
        place = self.folder / "other"
        self._control("up", place, "--gpus", "1", "--memory", str(memory), "--machine", self.folder / "machine")
        try:
            yield {**self.environment, "SLUICE_SIMGPU": str(place)}
        finally:
            self._control("down", place)

    def stats(self, gpu=0):
        return json.loads(self._control("stats", self.gpus, "--gpu", str(gpu), "--json"))

    def xid(self, code, gpu=0):
        self._control("xid", self.gpus, str(code), "--gpu", str(gpu))

    def down(self):
        self._control("down", self.gpus)

    @staticmethod
    def _control(*arguments):
        done = subprocess.run([REPOSITORY / "build/release/bin/simgpu-ctl", *arguments], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(f"simgpu-ctl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout
