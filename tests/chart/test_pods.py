# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the pods of both DaemonSets have in common: where they run, and what else a user says of them."""

import pytest
from chart import defaults, render, value


def node_terms(daemon_set):
    affinity = daemon_set.pod["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def test_nodes_with_a_gpu():
    for daemon_set in defaults().both:
        assert [term["matchExpressions"] for term in node_terms(daemon_set)] == [
            [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}],
            [{"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In", "values": ["true"]}]]


@value("affinity", None)
def test_all_nodes(rendered):
    assert all("affinity" not in each.pod for each in rendered.both)


@value("affinity", {"nodeAffinity": None, "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}})
def test_another_affinity(rendered):
    assert all(list(each.pod["affinity"]) == ["podAntiAffinity"] for each in rendered.both)


@value("nodeSelector", {"pool": "training"})
def test_node_selector(rendered):
    assert all(each.pod["nodeSelector"] == {"pool": "training"} for each in rendered.both)


@value("tolerations", [{"operator": "Exists"}])
def test_tolerations(rendered):
    assert all(each.pod["tolerations"] == [{"operator": "Exists"}] for each in rendered.both)


def test_default_tolerations():
    for daemon_set in defaults().both:
        assert {(each["key"], each.get("effect")) for each in daemon_set.pod["tolerations"]} == {
            ("nvidia.com/gpu", "NoSchedule"), ("CriticalAddonsOnly", None)}


@value("priorityClassName", "")
def test_no_priority_class(rendered):
    assert all(each.pod["priorityClassName"] == "system-node-critical" for each in defaults().both)
    assert all("priorityClassName" not in each.pod for each in rendered.both)


@value("runtimeClassName", "nvidia")
def test_runtime_class(rendered):
    assert all(each.pod["runtimeClassName"] == "nvidia" for each in rendered.both)


@value("podAnnotations", {"team": "gpu"})
def test_annotations(rendered):
    assert all(each.template["metadata"]["annotations"] == {"team": "gpu"} for each in rendered.both)


@value("podLabels", {"team": "gpu", "app.kubernetes.io/component": "other"})
def test_labels(rendered):
    for daemon_set in rendered.both:
        labels = daemon_set.template["metadata"]["labels"]
        assert labels["team"] == "gpu"
        # One that the selector needs stays.
        assert labels["app.kubernetes.io/component"] in daemon_set.name


@value("podSecurityContext", {"seLinuxOptions": {"type": "spc_t"}})
def test_security_context(rendered):
    assert all(each.pod["securityContext"] == {"seLinuxOptions": {"type": "spc_t"}} for each in rendered.both)


@value("hostPaths.root", "/var/run/lend")
def test_folder_of_grants(rendered):
    """The same path everywhere, because kubelet is told of it."""
    for daemon_set in rendered.both:
        assert daemon_set.volumes["grants"]["hostPath"] == {"path": "/var/run/lend", "type": "DirectoryOrCreate"}
        assert daemon_set.mounts["grants"] == {"name": "grants", "mountPath": "/var/run/lend"}
    assert "--grants=/var/run/lend" in rendered.node.args
    assert "--root=/var/run/lend" in rendered.plugin.args


@value("hostPaths.library", "/opt/lend")
def test_folder_of_libraries(rendered):
    plugin = rendered.plugin
    (library,) = plugin.pod["initContainers"]
    assert library["command"] == ["/opt/sluice/bin/sluice-install-library", "/host-library"]
    assert library["volumeMounts"] == [{"name": "library", "mountPath": "/host-library"}]
    assert plugin.volumes["library"]["hostPath"] == {"path": "/opt/lend", "type": "DirectoryOrCreate"}
    assert "--library=/opt/lend/0.1.0" in plugin.args


@value("hostPaths.kubelet", "/var/lib/other/kubelet")
def test_kubelets_folder(rendered):
    plugin = rendered.plugin
    for name in ("device-plugins", "pod-resources"):
        assert plugin.volumes[name]["hostPath"] == {"path": f"/var/lib/other/kubelet/{name}", "type": "Directory"}
        # What the program has for a default.
        assert plugin.mounts[name]["mountPath"] == f"/var/lib/kubelet/{name}"
    assert plugin.mounts["pod-resources"]["readOnly"] is True


@value("reserve", "4Gi")
def test_what_is_reserved_is_neither_lent_nor_offered(rendered):
    assert all("--reserve=4Gi" in each.args for each in rendered.both)
    assert not any(arg.startswith("--reserve") for each in defaults().both for arg in each.args)


@pytest.mark.parametrize("component", ["node", "devicePlugin"])
def test_a_users_variable_goes_before_the_charts(component):
    rendered = render({f"{component}.extraEnvs": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]})
    env = (rendered.node if component == "node" else rendered.plugin).env
    assert env["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_DRIVER_CAPABILITIES" in env
