#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The commands of docs/operations for a machine without a cluster, as they stand there but for the folders, on a simulated
GPU. What the pages say of a cluster is run by tests/e2e/cases/test_documented.py.

Usage: documented_test.py BUILD
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
# The pages are read as the tests on a cluster read them.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from support.documented import OPERATIONS, in_prose, shell_lines  # noqa: E402
from support.images import REPOSITORY  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
# What the pages name of `sluice`: what is run for it, and what it says. JOB is a job that runs.
SAYS = {
    "sluice run": ("sluice run -- echo went", r"went"),
    "sluice run --verbose": ("sluice run --verbose -- echo went", r"went"),
    "sluice status": ("sluice status", r"JOB"),
    "sluice status --json": ("sluice status --json", r'"name": ?"JOB"'),
    "sluice doctor": ("sluice doctor", r"(?m)^ok\s"),
    "sluice check-log FILE": ("sluice check-log FILE", r"lent within iterations"),
    "sluice explain JOB": ("sluice explain JOB", r"JOB"),
    "sluice budget": ("sluice budget all", r"budget"),
    "sluice drain on": ("sluice drain on", r"drain on, 1 jobs are there"),
    "sluice page": ("sluice page", r"http://127\.0\.0\.1:\d+/#token=[0-9a-f]+"),
}
# Of a cluster.
PAGES = sorted(page for page in OPERATIONS.glob("*.md") if page.name != "kubernetes.md")


class Bed:
    """A folder with a simulated GPU; what was started there ends with it."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.gpu = scratch / "gpu"
        self.environment = {"PATH": f"{BUILD / 'bin'}:/usr/bin:/bin", "HOME": str(scratch), "SLUICE_RUNTIME_DIR": str(scratch / "run")}

    def run(self, command):
        return subprocess.run(["bash", "-euc", command], cwd=REPOSITORY, env=self.environment, capture_output=True, text=True,
                              timeout=120)

    def here(self, text):
        """The page's text with our folders."""
        return text.replace("/tmp/gpu", str(self.gpu)).replace("build/release", str(BUILD))

    def clean(self):
        """Daemons, keeper and gateway outlive the commands that started them."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.scratch) in (entry / "cmdline").read_bytes().decode(errors="replace"):
                    os.kill(int(entry.name), signal.SIGKILL)
        subprocess.run([BUILD / "bin/simgpu-ctl", "down", self.gpu], check=False, capture_output=True)


def until(what, look, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


def replay_page(bed):
    """The block is one session of a shell; the simulated GPU stays for what comes then."""
    lines = list(shell_lines(OPERATIONS / "replay.md"))
    replays = [i for i, line in enumerate(lines) if "sluice-replay" in line]
    assert len(replays) == 2, lines
    done = bed.run(bed.here("\n".join(lines)))
    assert done.returncode == 0, done
    text, _, as_json = done.stdout.partition("{")
    plain = dict(re.findall(r"(?m)^(\w+)=(\S+)$", text))
    shared = json.loads("{" + as_json)
    for report in (plain, shared):
        assert int(report["mismatches"]) == 0 and int(report["words_checked"]) > 0, done


def pages(bed):
    named = {command for page in PAGES for command in [*in_prose(page, ["sluice"]), *shell_lines(page)]
             if command.startswith("sluice ")}
    assert named == set(SAYS), named ^ set(SAYS)
    # The one of the other page has no log.
    until("the last daemon has ended", lambda: bed.run("sluice status").returncode != 0)
    log = bed.scratch / "events.jsonl"
    with subprocess.Popen([BUILD / "bin/sluice", "run", "--event-log", log, "--", BUILD / "bin/train", "--model", "small-a",
                           "--iterations", "100000"], env=bed.environment, stdout=subprocess.DEVNULL) as job:
        try:
            def measured():
                done = bed.run("sluice status --json")
                jobs = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
                return jobs[0]["name"] if jobs and jobs[0]["figures"]["iterations"] > 2 else None
            name = until("the job makes iterations", measured)
            for command, pattern in SAYS.values():
                done = bed.run(command.replace("JOB", shlex.quote(name)).replace("FILE", str(log)))
                assert done.returncode == 0, (command, done)
                assert re.search(pattern.replace("JOB", re.escape(name)), done.stdout), (command, done)
        finally:
            job.kill()


def main():
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(pathlib.Path(folder))
        try:
            replay_page(bed)
            bed.environment |= {"SLUICE_SIMGPU": str(bed.gpu), "LD_LIBRARY_PATH": str(BUILD / "simgpu")}
            pages(bed)
        finally:
            bed.clean()


main()
