# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A node with two simulated GPUs: daemons, gateway, device plugin beside a kubelet of ours, and jobs that lend."""

import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading

from support.processes import until

from .processes import Processes

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / "build/release"
MIB = 1 << 20
CONTEXT = 4 * MIB  # of the simulated GPU
HANDLE = 2 * MIB
NODE = "observed"
# As in the demo: what two trainings want together is not there, and each finds room for its peak.
POOL_FRACTION = 0.645
MODELS = ("small-a", "small-b")
# Whose they are, as annotations' owner would say.
OWNERS = ("team-a/train-0/main", "team-b/train-1/main")


def program(name):
    return BUILD / "bin" / name


def trainer(model, seed, iterations):
    return (program("train"), "--model", model, "--seed", seed, "--iterations", iterations, "--learning-rate", "0.01")


class Node:
    """GPU 0 has two trainings that never end, in containers' places; GPU 1, a pool of 4 MiB, is for who breaks rules."""

    name = NODE

    def __init__(self, work):
        self.work = pathlib.Path(work)
        self.processes = Processes(self.work / "logs")
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.work), "TMPDIR": str(self.work),
                            "SLUICE_SIMGPU": str(self.work / "gpu"), "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
        self.runtime = self.work / "run"
        self.grants = self.work / "g"
        self.machine = BUILD / "simgpu/demo.machine"
        self._ending = threading.Event()
        self._trainings = []
        self._current = {}
        self._up = False

    # What there is

    def up(self):
        alone = [self._alone(model) for model in MODELS]
        self.pool = int(sum(peak for peak, _ in alone) * POOL_FRACTION) // HANDLE * HANDLE
        # Each is guaranteed what it keeps between two iterations, and may have its peak; a part of the pool is nobody's
        # by right, so that the budget may be less.
        self.granted = [-(-base // MIB) for _, base in alone]
        self.limits = [(-(-peak // MIB) + 1) * MIB for peak, _ in alone]
        self.least_budget = max(self.limits) + sum(self.granted) * MIB
        assert self.least_budget < self.pool, (alone, self.pool)
        # So much that the plugin's granules are whole.
        self.gpu_bytes = -(-(self.pool + 8 * CONTEXT) // MIB) * MIB
        self.control("up", self.work / "gpu", "--gpus", "2", "--memory", str(self.gpu_bytes), "--machine", self.machine)
        self._up = True
        self.plugin_port = self.start_plugin()
        self.granules = self.kubelet.ask("devices").split()
        assert self.granules[0] != "error", self.granules
        for gpu, pool, unit in ((0, self.pool, "256KiB"), (1, 4 * MIB, "32KiB")):
            self.start_daemon(gpu, pool, unit, "--grants", self.grants, "--terms", "wait", "--host-memory", "64MiB", "--keeper-linger", "2")
        self.gateway_port = self.start_gateway()
        for index, owner in enumerate(OWNERS):
            thread = threading.Thread(target=self._train, args=(index, owner, self.grant(owner, self.granted[index], self.limits[index])), name=owner)
            self._trainings.append(thread)
            thread.start()

    def down(self):
        self._ending.set()
        self.processes.stop_all()
        for thread in self._trainings:
            thread.join(30)
        if self._up:
            self.control("down", self.work / "gpu")
        if kept := os.environ.get("SLUICE_OBSERVE_KEEP"):
            for file in (*(self.work / "logs").iterdir(), *self.work.glob("events-*.jsonl")):
                folder = pathlib.Path(kept) / self.name
                folder.mkdir(exist_ok=True)
                shutil.copy(file, folder)

    def control(self, *arguments):
        subprocess.run([program("simgpu-ctl"), *map(str, arguments)], env=self.environment, check=True, stdout=subprocess.DEVNULL,
                       timeout=60)

    def _alone(self, model):
        """Peak and base of a training without Sluice."""
        done = subprocess.run([program("simgpu-ctl"), "run", "--memory", "1GiB", "--machine", self.machine, "--",
                               *map(str, trainer(model, 1, 3))], env=self.environment, check=True, capture_output=True, text=True, timeout=120)
        return tuple(int(number) for number in re.search(r"peak_bytes=(\d+) base_bytes=(\d+)", done.stdout).groups())

    def start(self, name, *argv, environment=None, talks=False):
        """A program of the node's, which ends with the tests."""
        return self.processes.start(name, *argv, environment={**self.environment, **(environment or {})}, talks=talks)

    def start_daemon(self, gpu, pool, unit, *flags, environment=None):
        folder = self.runtime / str(gpu)
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        daemon = self.start(f"noded-{gpu}", program("sluice-noded"), "--runtime-dir", folder, "--gpu", gpu, "--pool", pool, "--lease-unit", unit,
                            "--handle", HANDLE, "--event-log", self.event_log(gpu), *flags, environment=environment)
        until(f"daemon {gpu} answers", lambda: self.status(gpu), 60)
        return daemon

    def start_gateway(self):
        """The port of its metrics."""
        self.gateway = self.start("gateway", program("sluice-gateway"), "--runtime-dir", self.runtime, "--metrics", "127.0.0.1:0",
                                  "--node", self.name)
        return self._port(self.gateway)

    @staticmethod
    def _port(process):
        found = until(f"{process.name} serves metrics", lambda: re.search(r"metrics at port (\d+)", process.log()), 60)
        return int(found[1])

    def start_plugin(self, *orders):
        """The port of its metrics. `orders`: to kubelet, before it is there."""
        kubelet_folder = self.work / "kubelet"
        kubelet_folder.mkdir()
        self.kubelet = self.start("kubelet", BUILD / "tests/observe_kubelet", kubelet_folder, talks=True)
        assert self.kubelet.line() == "ready"
        for order in orders:
            assert self.kubelet.ask(order) == "ok", order
        plugin = self.start("device-plugin", program("sluice-device-plugin"), "--kubelet-dir", kubelet_folder, "--root", self.grants,
                            "--pod-resources", self.work / "no-pod-resources", "--granule", f"{MIB}", "--reserve", 8 * CONTEXT,
                            "--node", self.name, "--metrics", "127.0.0.1:0")
        return self._port(plugin)

    # What happens on it

    def sluice(self, *arguments, check=True):
        done = subprocess.run([program("sluice"), *map(str, arguments)], env=self.environment, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def status(self, gpu):
        """None: its daemon does not answer."""
        done = self.sluice("status", "--json", "--runtime-dir", self.runtime / str(gpu), check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def event_log(self, gpu):
        return self.work / f"events-{gpu}.jsonl"

    def events(self, gpu):
        """What is in its log so far."""
        lines = self.event_log(gpu).read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def job(self, name, gpu, *argv, flags=()):
        """`sluice run` of a program that sees this GPU alone."""
        return self.start(name, program("sluice"), "run", "--gpu", gpu, "--runtime-dir", self.runtime / str(gpu), *flags, "--", *argv,
                          environment={"CUDA_VISIBLE_DEVICES": str(gpu)})

    def workload(self, name, gpu, *arguments, flags=()):
        return self.job(name, gpu, BUILD / "tests/programs/workload", *arguments, flags=flags)

    def grant(self, owner, granules, limit):
        """That many granules of GPU 0 for a container, by kubelet and plugin; the folder of its socket."""
        gpu = self.status(0)["gpu_uuid"]
        # Granules of one GPU have names that begin alike.
        for _, ids in itertools.groupby(self.granules, key=lambda name: name.split("-")[0]):
            ids = list(ids)[:granules]
            folder = pathlib.Path(self.kubelet.ask("allocate " + " ".join(ids)))
            self.granules = [name for name in self.granules if name not in ids]
            record = self.grants / "g" / folder.name
            if f"gpu = {gpu}\n" in record.read_text():
                break
            record.unlink()  # as when its container is gone
        # What the plugin writes when it has found the pod; there is no API server here.
        terms = self.grants / "t" / folder.name
        partial = terms.with_name(terms.name + ".new")
        partial.write_text(f"sluice-terms 1\njob = {owner}\npod = \nlimit_bytes = {limit}\npriority = 0\ngroup = \n")
        partial.rename(terms)
        until(f"the daemon listens for {owner}", (folder / "sluice.sock").exists, 60)
        return folder

    def _train(self, index, owner, folder):
        """One training after the other, each in the container's place."""
        name = owner.split("/")[1]
        for turn in itertools.count():
            if self._ending.is_set():
                return
            process = self.start(name, *trainer(MODELS[index], 10 * index + turn, 400),
                                 environment={"LD_PRELOAD": str(BUILD / "lib/libsluice.so"), "SLUICE_SOCKET": str(folder / "sluice.sock")})
            self._current[name] = process
            while process.ended() is None and not self._ending.wait(0.05):
                pass

    def pause_trainings(self):
        """No further work of theirs reaches their GPU; what is under way comes to its end."""
        self._signal_trainings(signal.SIGSTOP)

    def resume_trainings(self):
        self._signal_trainings(signal.SIGCONT)

    def _signal_trainings(self, number):
        for process in self._current.values():
            process.send(number)

    def kill_training(self, index):
        """With SIGKILL; the next one begins at once. Its number."""
        owner = OWNERS[index]
        job = until(f"{owner} runs", lambda: [job for job in self.status(0)["jobs"] if job["name"] == owner and job["held_bytes"] > 0], 60)[0]
        self._current[owner.split("/")[1]].send(signal.SIGKILL)
        return job["id"]
