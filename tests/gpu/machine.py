# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The GPU, the programs and a daemon, for tests/gpu/run."""
import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

Gpu = collections.namedtuple("Gpu", "missing name driver")
MIB = 1 << 20
_HERE = pathlib.Path(__file__).resolve().parent
# Not packed: they belong to the machine that the programs run on.
NEVER_PACKED = ("libc.so", "libm.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so", "libcuda",
                "libnvrtc", "libnvidia")


def real_environment(environment):
    """Without anything that would put the simulated driver or the library in the way."""
    return {name: value for name, value in environment.items()
            if name not in ("SLUICE_SIMGPU", "SLUICE_SOCKET", "SLUICE_ORACLE", "LD_PRELOAD")}


def find_gpu(environment):
    if not os.path.exists("/dev/nvidiactl"):
        return Gpu("/dev/nvidiactl does not exist", "", "")
    # In a process of its own: this one shall not hold a context beside those of the cases.
    probe = subprocess.run([sys.executable, "-c", _PROBE], env=environment, capture_output=True,
                           text=True)
    lines = probe.stdout.splitlines()
    if probe.returncode != 0 or len(lines) != 2:
        return Gpu((probe.stderr.strip().splitlines() or ["the driver does not answer"])[-1], "", "")
    return Gpu("", lines[0], lines[1])


_PROBE = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(str(error))
code = cuda.cuInit(0)
if code != 0:
    sys.exit("cuInit answers %d" % code)
count, version, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
cuda.cuDeviceGetCount(ctypes.byref(count))
if count.value == 0:
    sys.exit("the driver knows no device")
name = ctypes.create_string_buffer(256)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDeviceGetName(name, 256, device)
cuda.cuDriverGetVersion(ctypes.byref(version))
print(name.value.decode())
print("CUDA %d.%d" % (version.value // 1000, version.value % 1000 // 10))
"""


def program_in(folder, name):
    """In a build the programs of the tests have a folder of their own; packed, all are in one."""
    path = folder / "bin" / name
    if not path.exists():
        path = folder / "tests" / "programs" / name
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no program '{name}'; wanted: a finished build, or what --pack made")
    return path


def pack(folder, out):
    """Programs, library and the shared libraries they need beyond the C library."""
    wanted = [program_in(folder, name) for name in ("sluice", "sluice-noded", "workload", "train")]
    (out / "bin").mkdir(parents=True, exist_ok=True)
    (out / "lib").mkdir(exist_ok=True)
    (out / "deps").mkdir(exist_ok=True)
    for program in wanted:
        shutil.copy2(program, out / "bin")
        for line in subprocess.run(["ldd", str(program)], capture_output=True, text=True,
                                   check=True).stdout.splitlines():
            parts = line.split()
            if len(parts) < 3 or parts[1] != "=>" or parts[0].startswith(NEVER_PACKED):
                continue
            shutil.copy2(parts[2], out / "deps" / parts[0])
    shutil.copy2(folder / "lib" / "libsluice.so", out / "lib")
    print(f"packed {len(wanted)} programs into {out}")


class Ballast:
    """The other end of ballast.py."""

    def __init__(self, process):
        self._process = process

    def free_bytes(self):
        return self._ask("free")

    def leave(self, free_bytes):
        """Fills the GPU up to about that much; what is left then."""
        return self._ask(f"leave {free_bytes}")

    def _ask(self, line):
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())
        except (BrokenPipeError, ValueError):
            self._process.kill()
            raise RuntimeError("ballast.py: " + self._process.stderr.read().strip()) from None


class Machine:
    """Where the cases run: the real GPU, or a simulated one for testing the script."""

    def __init__(self, folder, scratch, environment, simulated):
        self.folder = folder
        self.scratch = scratch
        self.simulated = simulated
        self.environment = dict(environment)
        if (folder / "deps").is_dir():
            self._prepend("LD_LIBRARY_PATH", folder / "deps")
        self.library = folder / "lib" / "libsluice.so"
        self._daemons = 0

    def __enter__(self):
        if self.simulated:
            gpu = self.scratch / "gpu"
            text = "launch_ns = 10000\nlaunch_queue = 1024\ncost.default = 200000\n"
            (self.scratch / "machine").write_text(text)
            subprocess.run([self.program("simgpu-ctl"), "up", gpu, "--memory", "256MiB", "--machine",
                            self.scratch / "machine"], check=True)
            self.environment["SLUICE_SIMGPU"] = str(gpu)
            self._prepend("LD_LIBRARY_PATH", self.folder / "simgpu")
        return self

    def __exit__(self, *unused):
        if self.simulated:
            subprocess.run([self.program("simgpu-ctl"), "down", self.scratch / "gpu"], check=False)

    def _prepend(self, name, value):
        old = self.environment.get(name)
        self.environment[name] = f"{value}:{old}" if old else str(value)

    def program(self, name):
        return str(program_in(self.folder, name))

    def run(self, command, timeout=300, **extra):
        """A finished program; its output as text."""
        environment = {**self.environment, **extra.pop("environment", {})}
        return subprocess.run([str(part) for part in command], env=environment, capture_output=True,
                              text=True, timeout=timeout, **extra)

    def start(self, command, **extra):
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([str(part) for part in command], env=self.environment, text=True,
                                **{**streams, **extra})

    @contextlib.contextmanager
    def ballast(self):
        """A process that can fill the GPU; see ballast.py. It lets go of everything after the block."""
        process = self.start([sys.executable, _HERE / "ballast.py"])
        try:
            yield Ballast(process)
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()

    @contextlib.contextmanager
    def daemon(self, pool, flags=()):
        """A sluice-noded; yields its folder, with events.jsonl complete after the block."""
        self._daemons += 1
        folder = self.scratch / f"noded-{self._daemons}"
        (folder / "run").mkdir(mode=0o700, parents=True)
        ready, write_end = os.pipe()
        with open(folder / "noded.log", "w") as log:
            noded = subprocess.Popen(
                [self.program("sluice-noded"), "--runtime-dir", folder / "run", "--ready-fd",
                 str(write_end), "--pool", str(pool), "--event-log", folder / "events.jsonl", *flags],
                env=self.environment, pass_fds=[write_end], stdout=log, stderr=log)
        os.close(write_end)
        try:
            if os.read(ready, 1) == b"":
                raise RuntimeError("sluice-noded did not start: " + (folder / "noded.log").read_text())
            yield folder
        finally:
            os.close(ready)
            noded.terminate()
            noded.wait(timeout=60)

    def job(self, folder, command, flags=()):
        """The command line of `command` as a job of the daemon in `folder`."""
        return [self.program("sluice"), "run", "--runtime-dir", folder / "run", *flags, "--", *command]
