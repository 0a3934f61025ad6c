# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""tests/gpu/run --dry: the way to another machine and all that is done there, with the simulated driver as its driver."""
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import pack


def run(repo, build, options, manifest, answers):
    with tempfile.TemporaryDirectory(prefix="sluice-dry-") as scratch:
        scratch = pathlib.Path(scratch)
        archive = scratch / "sluice-gpu.tar.gz"
        pack.make(repo, build.resolve(), archive, manifest, answers)
        print(f"packed: {archive.stat().st_size / 1e6:.1f} MB", flush=True)
        with tarfile.open(archive) as file:
            file.extractall(scratch / "there")
        command = [sys.executable, scratch / "there" / pack.NAME / "run", "--simulated", build.resolve(), "--small",
                   "--budget", str(options.budget)]
        for name, value in (("--json", options.json), ("--markdown", options.markdown)):
            command += [name, value.resolve()] if value else []
        command += ["--cuda-include", pathlib.Path(options.cuda_include).resolve()] if options.cuda_include else []
        for name, values in (("--part", options.part), ("--case", options.case), ("--only", options.only)):
            for value in values or ():
                command += [name, value]
        # Elsewhere: nothing there may be found by a path of this repository.
        return subprocess.run([str(word) for word in command], cwd=scratch, check=False).returncode
