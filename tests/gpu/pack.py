# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Makes one file that holds all that tests/gpu/run needs on a machine without our packages and without a network.

    sluice-gpu/run              this command, over there
    sluice-gpu/gpu/             the scripts
    sluice-gpu/bin, lib, tests  programs, library, contract tests
    sluice-gpu/deps             the shared libraries they need beyond the C library
    sluice-gpu/source           the kernels of the contract tests, and what compares our header with the vendor's
    sluice-gpu/simulated.json   what the simulated driver answered here, to compare with
    sluice-gpu/manifest.json    what this was made of
"""
import json
import pathlib
import shutil
import subprocess
import tarfile

import machine

NAME = "sluice-gpu"
PROGRAMS = ("sluice", "sluice-noded", "sluice-keeper", "workload", "train")
SOURCES = ("tests/contract/kernels.cu", "common/cuda/*abi.h", "tests/gpu/abi_*")
# Not packed: they belong to the machine that the programs run on.
NEVER = ("libc.so", "libm.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so", "libcuda", "libnvrtc",
         "libnvidia")


def make(repo, build, out, manifest, simulated):
    """Writes `out`, a folder or, when its name ends so, a .tar.gz."""
    if not out.name.endswith(".tar.gz"):
        _fill(repo, build, out, manifest, simulated)
        return
    folder = out.parent / (out.name + ".partial")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _fill(repo, build, folder / NAME, manifest, simulated)
        with tarfile.open(out, "w:gz", compresslevel=6) as archive:
            archive.add(folder / NAME, NAME)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(repo, build, out, manifest, simulated):
    for name in ("bin", "lib", "deps", "tests", "gpu", "source"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        _program(machine.program_in(build, name), out / "bin", out / "deps")
    for program in sorted((build / "tests").glob("contract.*_test")):
        _program(program, out / "tests", out / "deps")
    shutil.copy2(build / "lib" / "libsluice.so", out / "lib")
    for script in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if not script.name.endswith("_test.py"):
            shutil.copy2(script, out / "gpu")
    shutil.copy2(pathlib.Path(__file__).parent / "run", out / "run")
    for source in (path for pattern in SOURCES for path in sorted(repo.glob(pattern))):
        copy = out / "source" / source.relative_to(repo)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    (out / "simulated.json").write_text(json.dumps(simulated, indent=1) + "\n")


def _program(program, folder, deps):
    shutil.copy2(program, folder)
    # Half of a test program is names that nobody reads over there.
    subprocess.run(["strip", "--strip-unneeded", str(folder / program.name)], check=False)
    for line in subprocess.run(["ldd", str(program)], capture_output=True, text=True,
                               check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) < 3 or parts[1] != "=>" or parts[0].startswith(NEVER):
            continue
        if parts[2] == "not":
            raise RuntimeError(f"{program.name} needs {parts[0]}, which is not here")
        if not (deps / parts[0]).exists():
            shutil.copy2(parts[2], deps / parts[0])
