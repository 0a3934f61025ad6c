# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A grant is there as long as its pod is, whatever kubelet and the API server say meanwhile; and no longer."""

import os
import pathlib
import signal
import time

from support.pods import container, pod, prober, values
from support.processes import descendants_named, until

RECORDS = pathlib.Path("/run/sluice/g")
# Of a pod that kubelet refused after it had allocated: nobody will ever come to it.
LEFT = "0123456789abcdef" * 2


def records():
    return {entry.name for entry in RECORDS.iterdir() if not entry.name.endswith(".new")}


def leave_one():
    (RECORDS / f"{LEFT}.new").write_text(f"sluice-grant 1\nid = {LEFT}\ngpu = GPU-none\nbytes = 1048576\n"
                                         f"created_ns = {time.time_ns()}\ndevice = none-0\n")
    (RECORDS / f"{LEFT}.new").rename(RECORDS / LEFT)


def test_a_kubelet_that_begins_anew_and_lists_nobody_ends_nobody(sluice, cluster, kubectl):
    kubectl.apply(prober("stays", 8, "hold", "2", annotations={"sluice.dev/memory-limit": "10Mi"}),
                  pod("prepares", container(0, ["true"], "main"), init=[container(4, ["prober", "hold", "1"], "first")]))
    until("both hold memory", lambda: values(kubectl.logs("stays", check=False)).get("holding_mib") == [2]
          and values(kubectl.logs("prepares", "-c", "first", check=False)).get("holding_mib") == [1], seconds=120)
    before = records()
    assert len(before) == 2
    cluster.stop_api_server()
    try:
        cluster.stop_kubelet(signal.SIGKILL)
        # It makes the plugin ask kubelet again and again.
        leave_one()
        cluster.start_kubelet()
        # Kubelet has no pods without the API server. Several times as long as it takes a grant that nobody knows of.
        for _ in range(100):
            assert records() == {*before, LEFT}
            time.sleep(0.1)
    finally:
        cluster.start_api_server()
    until("the node is ready", cluster.node_is_ready)
    until("what nobody will come to is over", lambda: records() == before, seconds=120)
    (plugin,) = descendants_named("sluice-device-plugin")
    os.kill(plugin, signal.SIGKILL)
    until("there is a new plugin", lambda: descendants_named("sluice-device-plugin") not in ([], [plugin]), seconds=120)
    # Less what the first one may have beyond its grant: the new plugin knows of it.
    sluice.until_offered(46)
    assert records() == before
    # A second program of each container finds the socket, and the limit of before.
    for name, part, granted in (("stays", "train", 10), ("prepares", "first", 4)):
        said = values(kubectl.run("exec", name, "-c", part, "--", "prober", "see").stdout)
        assert said["driver_total"] == [granted << 20]
