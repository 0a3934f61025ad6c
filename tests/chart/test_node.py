# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The DaemonSet of the daemons."""

import pytest
from chart import defaults, table, value

PROGRAM = "/opt/sluice/bin/sluice-node"
PROBES = ["startup", "readiness", "liveness"]


def of_the_daemons(daemon_set):
    """Its options behind those of sluice-node."""
    return daemon_set.args[daemon_set.args.index("--") + 1:]


def test_default():
    node = defaults().node
    assert node.container["command"] == [PROGRAM]
    assert node.args == ["--runtime-dir=/run/sluice-node", "--gpus=all", "--", "--grants=/run/sluice", "--policy=flow",
                         "--lanes=2", "--claims=steps", "--lend=demand", "--lease-wait=30", "--patience=120",
                         "--terms=wait"]
    assert node.env == {"SLUICE_RUNTIME_DIR": "/run/sluice-node", "NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    assert node.volumes["daemons"]["emptyDir"] == {"medium": "Memory"}
    assert node.mounts["daemons"]["mountPath"] == "/run/sluice-node"


@table("option",
       ("node.policy", "auto", "--policy=auto"),
       ("node.lanes", 3, "--lanes=3"),
       ("node.claims", "contract", "--claims=contract"),
       ("node.lend", "eager", "--lend=eager"),
       ("node.hostMemory", "16Gi", "--host-memory=16Gi"),
       ("node.hostMemory", "0", "--host-memory=0"),
       ("node.hostMemory", 0, "--host-memory=0"),
       ("node.residents", 2, "--residents=2"),
       ("node.residents", "auto", "--residents=auto"),
       ("node.slice", 5, "--slice=5"),
       ("node.leaseWait", 0, "--lease-wait=0"),
       ("node.leaseWait", 1000000, "--lease-wait=1000000"),
       ("node.patience", 600, "--patience=600"),
       ("node.leaseUnit", "4MiB", "--lease-unit=4MiB"),
       ("node.handle", "64Mi", "--handle=64Mi"),
       ("node.extraArgs", ["--context=512MiB"], "--context=512MiB"),
       ("annotations.enabled", False, "--terms=off"))
def test_option(rendered, option):
    assert option in of_the_daemons(rendered.node)


@value("node.pool", "64Gi", beside={"reserve": "8Gi"})
def test_pool(rendered):
    assert {"--pool=64Gi", "--reserve=8Gi"} < set(of_the_daemons(rendered.node))


@value("node.eventLog", "/logs/events", beside={"node.gpus": 0})
def test_event_log(rendered):
    assert "--event-log=/logs/events" in of_the_daemons(rendered.node)


@table("gpus", ("node.gpus", "0,2", "0,2"), ("node.gpus", 0, "0"))
def test_gpus(rendered, gpus):
    """Those that have a daemon are offered, and no others."""
    assert rendered.node.args[1] == f"--gpus={gpus}"
    assert f"--gpus={gpus}" in rendered.plugin.args
    # The numbers are those of all.
    assert all(each.env["NVIDIA_VISIBLE_DEVICES"] == "all" for each in rendered.both)


@table("version", ("mpsVersion", "3", "3"), ("mpsVersion", "legacy", "legacy"), beside={"compute": "mps"})
def test_mps_version(rendered, version):
    """Both decide alike."""
    assert f"--mps-version={version}" in rendered.node.args
    assert f"--mps-version={version}" in rendered.plugin.args


@value("compute", "mps", beside={"hostPaths.root": "/srv/sluice"})
def test_mps(rendered):
    """Both speak of one folder, which both have."""
    own = rendered.node.args[:rendered.node.args.index("--")]
    assert own == ["--runtime-dir=/run/sluice-node", "--gpus=all", "--compute=mps", "--mps-dir=/srv/sluice/mps",
                   "--mps-version=auto", "--grants=/srv/sluice", "--terms=wait"]
    assert {"--compute=mps", "--mps-dir=/srv/sluice/mps"} <= set(rendered.plugin.args)
    assert rendered.node.mounts["grants"]["mountPath"] == "/srv/sluice"
    assert "--mps-version=auto" in rendered.plugin.args
    assert not any("mps" in arg for each in (defaults().node, defaults().plugin) for arg in each.args)


def test_probes():
    container = defaults().node.container
    commands = {probe: container[f"{probe}Probe"]["exec"]["command"] for probe in PROBES}
    for command in commands.values():
        assert command[:2] == [PROGRAM, "--runtime-dir=/run/sluice-node"]
    # Only to be ready takes daemons that serve: one GPU that does not work is no reason to end those of the others.
    assert {probe: command[2:] for probe, command in commands.items()} == {
        "startup": ["--check-alive"], "readiness": ["--check"], "liveness": ["--check-alive"]}


@table("where", *[(f"node.probes.{probe}.{field}", 99, (f"{probe}Probe", field))
                  for probe in PROBES for field in ("periodSeconds", "timeoutSeconds", "failureThreshold")])
def test_probe(rendered, where):
    probe, field = where
    assert rendered.node.container[probe][field] == 99


@value("node.updateStrategy.type", "RollingUpdate")
def test_update_strategy(rendered):
    assert defaults().node.document["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert rendered.node.document["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


@value("node.capabilities", ["SYS_PTRACE"])
def test_capabilities(rendered):
    assert rendered.node.container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
    assert all("add" not in each["securityContext"]["capabilities"] for each in rendered.plugin.containers)


@value("node.resources", {"limits": {"cpu": 2}})
def test_resources(rendered):
    assert rendered.node.container["resources"] == {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": 2}}


@value("node.extraEnvs", [{"name": "LD_LIBRARY_PATH", "value": "/driver"}])
def test_variables(rendered):
    assert rendered.node.env["LD_LIBRARY_PATH"] == "/driver"
    assert rendered.plugin.env == defaults().plugin.env


@value("node.extraVolumes", [{"name": "driver", "hostPath": {"path": "/driver"}}])
def test_volumes(rendered):
    assert rendered.node.volumes["driver"] == {"name": "driver", "hostPath": {"path": "/driver"}}
    assert "driver" not in rendered.plugin.volumes


@value("node.extraVolumeMounts", [{"name": "driver", "mountPath": "/driver"}])
def test_mounts(rendered):
    assert rendered.node.mounts["driver"] == {"name": "driver", "mountPath": "/driver"}
    assert "driver" not in rendered.plugin.mounts


@pytest.mark.parametrize("rights", ["hostNetwork", "hostIPC", "initContainers"])
def test_has_not(rights):
    assert rights not in defaults().node.pod
