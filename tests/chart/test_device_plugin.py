# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The DaemonSet of the device plugin, and what comes with annotations."""

import yaml
from chart import defaults, render, table, value

CEILINGS = {"*": {"maxPriority": 0}, "team-a": {"maxMemoryLimit": "40Gi", "maxPriority": 100, "shareGroups": True}}


def test_default():
    plugin = defaults().plugin
    assert plugin.container["command"] == ["/opt/sluice/bin/sluice-device-plugin"]
    assert plugin.args == ["--resource=sluice.dev/gpu-memory", "--root=/run/sluice",
                           "--library=/var/lib/sluice/library/0.1.0",
                           "--ready-file=/run/sluice-device-plugin/registered", "--gpus=all", "--granule=auto",
                           "--packing=pack", "--probation=600", "--foreign-gpus=refuse", "--driver-limit=auto", "--driver-charges=mapped",
                           "--visible-devices=on", "--metrics=0.0.0.0:9454", "--node=$(NODE_NAME)",
                           "--annotations=on", "--trust=namespace"]
    assert plugin.container["ports"] == [{"name": "metrics", "containerPort": 9454}]
    assert plugin.env == {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility",
                          "NODE_NAME": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


@table("options",
       ("devicePlugin.resource", "example.com/lent", ["--resource=example.com/lent"]),
       ("devicePlugin.granule", "512Mi", ["--granule=512Mi"]),
       ("devicePlugin.packing", "spread", ["--packing=spread"]),
       ("devicePlugin.probation", 0, ["--probation=0"]),
       ("devicePlugin.ignoreXids", [13, 31], ["--ignore-xid=13", "--ignore-xid=31"]),
       ("devicePlugin.foreignGpus", "share", ["--foreign-gpus=share"]),
       ("devicePlugin.driverLimit", "off", ["--driver-limit=off"]),
       ("devicePlugin.driverLimit", False, ["--driver-limit=off"]),
       ("devicePlugin.driverLimit", True, ["--driver-limit=on"]),
       ("devicePlugin.driverCharges", "made", ["--driver-charges=made"]),
       ("devicePlugin.visibleDevices", False, ["--visible-devices=off"]),
       ("devicePlugin.containerEnv", {"LD_LIBRARY_PATH": "/driver:/cuda", "A": "1=2"},
        ["--env=LD_LIBRARY_PATH=/driver:/cuda", "--env=A=1=2"]),
       ("devicePlugin.containerMounts",
        [{"hostPath": "/a", "mountPath": "/b"}, {"hostPath": "/c", "mountPath": "/d", "readOnly": False}],
        ["--mount=/a:/b:ro", "--mount=/c:/d:rw"]),
       ("devicePlugin.metricsPort", 9000, ["--metrics=0.0.0.0:9000"]),
       ("devicePlugin.metricsPort", 0, ["--metrics=off"]),
       ("devicePlugin.extraArgs", ["--later=1"], ["--later=1"]),
       ("annotations.trust", "node", ["--trust=node"]))
def test_option(rendered, options):
    assert set(options) <= set(rendered.plugin.args)
    assert not set(options) & set(rendered.node.args)


def test_it_is_ready_when_kubelet_knows_it():
    plugin = defaults().plugin
    file = plugin.container["readinessProbe"]["exec"]["command"][-1]
    assert f"--ready-file={file}" in plugin.args
    assert file.startswith(plugin.mounts["ready"]["mountPath"] + "/")


def test_it_is_alive_while_it_answers():
    container = defaults().plugin.container
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"] == [*container["command"], "--check"]


@table("where", *[(f"devicePlugin.probes.{probe}.{field}", 99, (f"{probe}Probe", field))
                  for probe in ("startup", "readiness", "liveness")
                  for field in ("periodSeconds", "timeoutSeconds", "failureThreshold")])
def test_probe(rendered, where):
    probe, field = where
    assert rendered.plugin.container[probe][field] == 99


@value("devicePlugin.updateStrategy.type", "OnDelete")
def test_update_strategy(rendered):
    assert defaults().plugin.document["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert rendered.plugin.document["spec"]["updateStrategy"] == {"type": "OnDelete"}


@value("devicePlugin.resources", {"limits": {"memory": "1Gi"}})
def test_resources(rendered):
    for container in rendered.plugin.containers:
        assert container["resources"] == {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}


@value("devicePlugin.extraEnvs", [{"name": "LD_LIBRARY_PATH", "value": "/driver"}])
def test_variables(rendered):
    assert rendered.plugin.env["LD_LIBRARY_PATH"] == "/driver"
    assert rendered.node.env == defaults().node.env


@value("devicePlugin.extraVolumes", [{"name": "driver", "hostPath": {"path": "/driver"}}])
def test_volumes(rendered):
    assert rendered.plugin.volumes["driver"] == {"name": "driver", "hostPath": {"path": "/driver"}}
    assert "driver" not in rendered.node.volumes


@value("devicePlugin.extraVolumeMounts", [{"name": "driver", "mountPath": "/driver"}])
def test_mounts(rendered):
    assert rendered.plugin.mounts["driver"] == {"name": "driver", "mountPath": "/driver"}
    assert "driver" not in rendered.node.mounts


@value("annotations.enabled", False, {"devicePlugin.metricsPort": 0})
def test_without_annotations(rendered):
    """Nothing of the API server's is needed, so nothing is there."""
    plugin = rendered.plugin
    assert "--annotations=off" in plugin.args
    assert not any(arg.startswith(("--node", "--trust", "--namespaces")) for arg in plugin.args)
    assert "NODE_NAME" not in plugin.env
    assert plugin.pod["automountServiceAccountToken"] is False
    assert not rendered.all("ClusterRole") and not rendered.all("ClusterRoleBinding")


@value("annotations.namespaces", CEILINGS)
def test_ceilings(rendered):
    plugin = rendered.plugin
    assert "--namespaces=/etc/sluice/namespaces.yaml" in plugin.args
    assert plugin.volumes["namespaces"]["configMap"] == {"name": "sluice-namespaces"}
    assert plugin.mounts["namespaces"] == {"name": "namespaces", "mountPath": "/etc/sluice", "readOnly": True}
    config = rendered.one("ConfigMap")
    assert config["metadata"]["name"] == "sluice-namespaces"
    assert list(config["data"]) == ["namespaces.yaml"]
    assert yaml.safe_load(config["data"]["namespaces.yaml"]) == CEILINGS
    assert not defaults().all("ConfigMap")


def test_other_ceilings_start_new_plugins():
    def checksum(ceilings):
        metadata = render({"annotations.namespaces": ceilings, "podAnnotations": {"team": "gpu"}}).plugin.template["metadata"]
        assert metadata["annotations"]["team"] == "gpu"
        return metadata["annotations"]["sluice.dev/namespaces-checksum"]

    assert checksum(CEILINGS) == checksum(CEILINGS)
    assert checksum(CEILINGS) != checksum({"*": {"maxPriority": 1}})
