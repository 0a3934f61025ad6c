# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What tests/e2e/isolated leaves of a command, however that ends: nothing. Needs root, and no cluster."""

import pathlib
import signal
import subprocess
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# What a kubelet does to a machine: settings, mounts, control groups with processes in them, children that outlive it.
DEED = """
echo 1 > /proc/sys/kernel/panic_on_oops; echo 1234567 > /proc/sys/kernel/keys/root_maxkeys
mkdir /var/lib/of-the-tests /run/of-the-tests; mount -t tmpfs tmpfs /mnt; touch /var/lib/of-the-tests/file
for root in $(find /sys/fs/cgroup -maxdepth 1 -name memory) $([ -e /sys/fs/cgroup/cgroup.procs ] && echo /sys/fs/cgroup); do
  mkdir -p $root/kubepods/burstable/pod1
  sh -c 'echo $$ > '$root'/kubepods/burstable/pod1/cgroup.procs; trap "" TERM; exec sleep 987654' &
done
until [ -n "$(cat $root/kubepods/burstable/pod1/cgroup.procs)" ]; do :; done
echo done > "$1"
"""
SETTINGS = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
            "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"]


def machine():
    groups = subprocess.run(["find", "/sys/fs/cgroup", "-maxdepth", "2", "(", "-name", "kubepods", "-o", "-name", "k8s.io", ")"],
                            capture_output=True, text=True, check=False).stdout
    ours = subprocess.run(["pgrep", "-fx", "sleep 987654"], capture_output=True, text=True, check=False).stdout
    return {"settings": [pathlib.Path("/proc/sys", name).read_text() for name in SETTINGS],
            "mounts": pathlib.Path("/proc/self/mounts").read_text(), "groups": groups, "processes": ours,
            "var": pathlib.Path("/var/lib/of-the-tests").exists(), "run": pathlib.Path("/run/of-the-tests").exists()}


@pytest.fixture
def before():
    return machine()


def isolated(work, behind):
    return subprocess.Popen([HERE / "isolated", work, "sh", "-c", DEED + behind, "deed", work / "done"],
                            stdin=subprocess.DEVNULL, start_new_session=True)


def until_done(work, running):
    while not (work / "done").exists():
        assert running.poll() is None
        time.sleep(0.01)


@pytest.mark.parametrize("code", [0, 7])
def test_that_ends(tmp_path, before, code):
    assert isolated(tmp_path, f"exit {code}").wait(60) == code
    assert machine() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_that_is_told_to_end(tmp_path, before, number):
    running = isolated(tmp_path, "while :; do sleep 1; done")
    until_done(tmp_path, running)
    running.send_signal(number)
    assert running.wait(60) == 128 + number
    assert machine() == before


def test_that_is_killed(tmp_path, before):
    running = isolated(tmp_path, "while :; do sleep 1; done")
    until_done(tmp_path, running)
    running.kill()
    running.wait(60)
    # Its control groups are the next one's to remove.
    again = tmp_path / "again"
    again.mkdir()
    deadline = time.monotonic() + 60
    while subprocess.run([HERE / "isolated", again, "true"], check=False, capture_output=True).returncode != 0:
        assert time.monotonic() < deadline
        subprocess.run(["rm", "-rf", again], check=True)
        again.mkdir()
    assert machine() == before


def test_that_is_not_alone(tmp_path):
    running = isolated(tmp_path, "while :; do sleep 1; done")
    until_done(tmp_path, running)
    other = tmp_path / "other"
    other.mkdir()
    second = subprocess.run([HERE / "isolated", other, "true"], capture_output=True, text=True, check=False)
    assert second.returncode == 1 and "another one runs" in second.stderr
    running.terminate()
    running.wait(60)
