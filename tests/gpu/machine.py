# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The GPU, the programs and a daemon, for tests/gpu/run."""
import collections
import contextlib
import glob
import os
import pathlib
import subprocess
import sys
import tempfile
import time

Gpu = collections.namedtuple("Gpu", "missing name driver capability total_bytes libraries")
MIB = 1 << 20
HERE = pathlib.Path(__file__).resolve().parent


def real_environment(environment):
    """Without anything that would put the simulated driver or the library in the way."""
    return {name: value for name, value in environment.items()
            if name not in ("SLUICE_SIMGPU", "SLUICE_SOCKET", "SLUICE_ORACLE", "LD_PRELOAD",
                            "SLUICE_CONTRACT_DRIVER", "SLUICE_CONTRACT_IMAGE")}


def no_gpu(why):
    return Gpu(why, "", "", "", 0, [])


def find_gpu(environment):
    if not os.path.exists("/dev/nvidiactl"):
        return no_gpu("/dev/nvidiactl does not exist")
    # In a process of its own: this one shall not hold a context beside those of the cases.
    try:
        probe = subprocess.run([sys.executable, "-c", _PROBE], env=environment, capture_output=True,
                               text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return no_gpu("the driver does not answer within two minutes")
    lines = probe.stdout.splitlines()
    if probe.returncode != 0 or len(lines) < 4:
        return no_gpu((probe.stderr.strip().splitlines() or ["the driver does not answer"])[-1])
    gpu = Gpu("", lines[0], lines[1], lines[2], int(lines[3]), [pathlib.Path(line) for line in lines[4:]])
    if any(library.parent.name == "simgpu" for library in gpu.libraries):
        return no_gpu(f"{gpu.libraries[0]} is the simulated driver; take it out of LD_LIBRARY_PATH")
    return gpu


_PROBE = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(str(error))
code = cuda.cuInit(0)
if code != 0:
    sys.exit("cuInit answers %d" % code)
count, version, device, major, minor = (ctypes.c_int() for i in range(5))
total = ctypes.c_size_t()
cuda.cuDeviceGetCount(ctypes.byref(count))
if count.value == 0:
    sys.exit("the driver knows no device")
name = ctypes.create_string_buffer(256)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDeviceGetName(name, 256, device)
cuda.cuDriverGetVersion(ctypes.byref(version))
cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
print(name.value.decode())
driver = ""
try:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    text = ctypes.create_string_buffer(96)
    if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0:
        driver = ", driver " + text.value.decode()
except (OSError, AttributeError):
    pass
print("CUDA %d.%d%s" % (version.value // 1000, version.value % 1000 // 10, driver))
print("%d%d" % (major.value, minor.value))
print(total.value)
found = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if len(line.split(None, 5)) == 6}
for path in sorted(found):
    if path.rsplit("/", 1)[-1].startswith(("libcuda.so", "libnvidia-ml.so")):
        print(path)
"""


def find_simulated(environment, simulator):
    """The same about a simulated GPU, which is up only for the question."""
    probe = subprocess.run([str(program_in(simulator, "simgpu-ctl")), "run", "--memory", "64MiB", "--", sys.executable,
                            "-c", _PROBE], env=environment, capture_output=True, text=True, timeout=60)
    lines = probe.stdout.splitlines()
    if probe.returncode != 0 or len(lines) < 4:
        raise RuntimeError(f"no simulated GPU: {probe.stderr.strip()[-300:]}")
    return Gpu("", lines[0], lines[1], lines[2], int(lines[3]), [])


def find_nvrtc(environment):
    """The NVRTC of the machine: as it is found by name, of the toolkit, or of Python's packages. None: there is none."""
    for name in ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        code = f"import ctypes; ctypes.CDLL({name!r}); print([l.split()[-1] for l in open('/proc/self/maps') " \
               "if 'libnvrtc.so' in l][0])"
        found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        if found.returncode == 0:
            return pathlib.Path(found.stdout.strip())
    places = ["/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib"]
    places += [f"{folder}/nvidia/*/lib" for folder in sys.path if folder]
    found = [path for place in places for path in sorted(glob.glob(place + "/libnvrtc.so.1[0-9]"))]
    return pathlib.Path(found[0]) if found else None


def link_libraries(gpu, nvrtc, folder):
    """Two folders: the machine's driver and management library under the names that programs open, and the NVRTC and
    cuBLAS that lie together.

    They go first on the search path: the programs of a build know where the simulated driver lies.
    """
    driver, toolkit = folder / "driver", folder / "toolkit"
    driver.mkdir()
    toolkit.mkdir()
    for library in gpu.libraries:
        name = "libcuda.so.1" if library.name.startswith("libcuda") else "libnvidia-ml.so.1"
        _link(library, driver / name)
    if nvrtc is not None:
        for pattern in ("libnvrtc*.so*", "libcublas*.so*"):
            for library in sorted(nvrtc.parent.glob(pattern)):
                _link(library, toolkit / library.name)
    return driver, toolkit


def _link(target, at):
    if not at.exists():
        at.symlink_to(target.resolve())


def settle(folder):
    """Carried programs take the machine's C++ runtime where the carried one asks for a newer C library."""
    for attempt in range(2):
        for name in ("sluice", "sluice-noded"):
            done = subprocess.run([str(program_in(folder, name)), "--version"], capture_output=True, text=True)
            if done.returncode != 0:
                break
        else:
            return
        if attempt == 0 and "GLIBC_" in done.stderr:
            for name in ("libstdc++.so.6", "libgcc_s.so.1"):
                (folder / "deps" / name).unlink(missing_ok=True)
    raise RuntimeError(f"the carried programs do not run here: {done.stderr.strip()[-300:]}")


def program_in(folder, name):
    """In a build the programs of the tests have a folder of their own; packed, all are in one."""
    path = folder / "bin" / name
    if not path.exists():
        path = folder / "tests" / "programs" / name
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no program '{name}'; wanted: a finished build, or what --pack made")
    return path


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
    """Where the cases run: the real GPU, or a simulated one (of the build `simulator`) for testing the script."""

    def __init__(self, folder, scratch, environment, simulator=None, small=False):
        self.folder = folder
        # Of its own: several parts of one run make a machine each.
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=scratch, prefix="m"))
        self.simulated = simulator is not None
        # With fewer repetitions: what is tested is the script, not the GPU.
        self.small = small
        self.deadline = None
        self.environment = dict(environment)
        self.library = folder / "lib" / "libsluice.so"
        self._simulator = simulator
        self._daemons = 0

    def __enter__(self):
        if self.simulated:
            gpu = self.scratch / "gpu"
            text = "launch_ns = 10000\nlaunch_queue = 1024\ncost.default = 200000\n"
            (self.scratch / "machine").write_text(text)
            subprocess.run([program_in(self._simulator, "simgpu-ctl"), "up", gpu, "--memory", "256MiB",
                            "--machine", self.scratch / "machine"], check=True)
            self.environment["SLUICE_SIMGPU"] = str(gpu)
        return self

    def __exit__(self, *unused):
        if self.simulated:
            subprocess.run([program_in(self._simulator, "simgpu-ctl"), "down", self.scratch / "gpu"],
                           check=False)

    def program(self, name):
        return str(program_in(self.folder, name))

    def run(self, command, timeout=300, **extra):
        """A finished program; its output as text."""
        environment = {**self.environment, **extra.pop("environment", {})}
        if self.deadline is not None:
            timeout = max(1, min(timeout, self.deadline - time.monotonic()))
        return subprocess.run([str(part) for part in command], env=environment, capture_output=True,
                              text=True, timeout=timeout, **extra)

    def start(self, command, **extra):
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([str(part) for part in command], env=self.environment, text=True,
                                **{**streams, **extra})

    @contextlib.contextmanager
    def ballast(self):
        """A process that can fill the GPU; see ballast.py. It lets go of everything after the block."""
        process = self.start([sys.executable, HERE / "ballast.py"])
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
