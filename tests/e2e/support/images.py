# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Images of the tests, as archives that containerd imports: nothing comes from a registry."""

import json
import pathlib
import shutil
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PAUSE = "registry.k8s.io/pause:3.6"
TRAINER = "sluice.test/trainer:1"
MUSL = "sluice.test/musl:1"


def make_pause(work):
    """What holds a pod's namespaces. It has nothing to do but be there."""
    root = pathlib.Path(work) / "pause"
    (root / "bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    return _archive(work, PAUSE, [root], ["/bin/busybox", "sleep", "2147483647"])


def make_trainer(base, work):
    """The example trainer as anybody's image: a Debian, a compiler (the simulated NVRTC needs one) and the program."""
    root = pathlib.Path(work) / "trainer"
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True)
    shutil.copy(REPOSITORY / "build/release/bin/train", programs)
    shutil.copy(REPOSITORY / "build/release/tests/e2e_prober", programs / "prober")
    shutil.copy(REPOSITORY / "build/release/tests/e2e_intruder", programs / "intruder")
    return _archive(work, TRAINER, [base, root], ["/bin/sh"])


def make_musl(work):
    """A program of another C library, with nothing of a Debian around it."""
    root = pathlib.Path(work) / "musl"
    (root / "bin").mkdir(parents=True)
    (root / "lib").mkdir()
    shutil.copy("/lib/ld-musl-x86_64.so.1", root / "lib")
    subprocess.run(["musl-gcc", "-x", "c", "-", "-o", root / "bin/says"], check=True, text=True,
                   input='#include <stdio.h>\nint main(void) { return puts("fine") == EOF; }\n')
    return _archive(work, MUSL, [root], ["/bin/says"])


def _archive(work, name, layers, command):
    archive = pathlib.Path(work) / (name.split("/")[-1].split(":")[0] + ".tar")
    subprocess.run(["/usr/bin/python3", "-B", REPOSITORY / "packaging/oci.py", archive, "--name", name,
                    *(f"--layer={layer}" for layer in layers), "--cmd", json.dumps(command)],
                   check=True, stdout=subprocess.DEVNULL)
    return archive
