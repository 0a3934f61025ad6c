# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What Helm prints after an installation."""

import shutil

import pytest
import yaml
from chart import CHART, WITHOUT_OPERATOR, Rendered, render_text


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """A function from values to the text. Helm shows it only where there is a cluster, so an object carries it here."""
    chart = tmp_path_factory.mktemp("notes") / "sluice"
    shutil.copytree(CHART, chart)
    text = chart / "templates" / "NOTES.txt"
    (chart / "templates" / "_notes.tpl").write_text('{{- define "notes" -}}' + text.read_text() + "{{- end }}")
    text.unlink()
    (chart / "templates" / "notes.yaml").write_text(
        'apiVersion: v1\nkind: Notes\nmetadata: {name: notes}\ntext: {{ include "notes" . | toJson }}\n')
    return lambda values, **others: Rendered(render_text(values, chart=chart, **others)).one("Notes")["text"]


def test_how_to_verify(notes):
    text = notes({})
    assert r"GRANULES:.status.allocatable.sluice\.dev/gpu-memory" in text
    assert "kubectl -n sluice exec daemonset/sluice-node -- /opt/sluice/bin/sluice status" in text
    assert "--runtime-dir /run/sluice-node/0" in text
    assert "WARNING" not in text


def test_the_pod_to_paste(notes):
    text = notes({"devicePlugin.resource": "example.com/lent", "image.registry": "a.example.com", "runtimeClassName": "nvidia"})
    here = text.split("<<EOF\n")[1].split("EOF\n")[0]
    pod = yaml.safe_load(here)
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"example.com/lent": 1}
    assert container["image"] == "a.example.com/sluice:0.1.0"
    assert pod["spec"]["runtimeClassName"] == "nvidia"


def test_first_gpu(notes):
    assert "--runtime-dir /run/sluice-node/2" in notes({"node.gpus": "2,3"})
    assert "--runtime-dir /run/sluice-node/1" in notes({"node.gpus": 1})


@pytest.mark.parametrize("values, words", [
    ({"namespaceOverride": "default"}, "WARNING: the namespace is default"),
    ({"annotations.enabled": False}, "WARNING: annotations.enabled is false"),
    ({"annotations.trust": "node"}, "WARNING: annotations.trust is node"),
    ({"node.updateStrategy.type": "RollingUpdate"}, "WARNING: node.updateStrategy.type is RollingUpdate"),
    ({"node.resources": {"limits": {"memory": "1Gi"}}}, "WARNING: node.resources.limits.memory"),
    ({"priorityClassName": ""}, "WARNING: priorityClassName is empty"),
    ({"serviceMonitor.enabled": True, "serviceMonitor.honorLabels": False}, "WARNING: serviceMonitor.honorLabels is false"),
    ({"serviceMonitor.enabled": True, "gateway.metricsPort": 0}, "gateway.metricsPort is 0: nobody tells Prometheus"),
    ({"serviceMonitor.enabled": True, "gateway.enabled": False}, "gateway.metricsPort is 0: nobody tells Prometheus"),
    ({"devicePlugin.visibleDevices": False}, "WARNING: devicePlugin.visibleDevices is false"),
    ({}, "NOTE: image sluice:0.1.0 names no registry"),
    ({}, "NOTE: annotations.namespaces is empty"),
])
def test_warning(notes, values, words):
    assert words in notes(values)


@pytest.mark.parametrize("values, words", [
    ({"image.registry": "a.example.com"}, "names no registry"),
    ({"annotations.namespaces": {"*": {"maxPriority": 0}}}, "annotations.namespaces is empty"),
    ({"node.resources": {"limits": {"memory": "1Gi"}}, "node.hostMemory": "0"}, "node.resources.limits.memory"),
    ({"node.resources": {"limits": {"cpu": 1}}}, "node.resources.limits.memory"),
    ({"devicePlugin.visibleDevices": False, "devicePlugin.containerEnv": {"A": "b"}}, "devicePlugin.visibleDevices"),
])
def test_no_warning(notes, values, words):
    assert words not in notes(values)


@pytest.mark.parametrize("value", ["serviceMonitor.enabled", "prometheusRule.enabled"])
def test_a_cluster_without_the_operator(notes, value):
    words = "WARNING: the cluster does not know monitoring.coreos.com/v1"
    assert words in notes({value: True}, arguments=WITHOUT_OPERATOR)
    assert words not in notes({value: True})
    assert words not in notes({}, arguments=WITHOUT_OPERATOR)


def test_metrics(notes):
    assert "kubectl -n sluice port-forward daemonset/sluice-node 9452" in notes({})
    assert "dashboards.enabled" in notes({}) and '"Sluice / ..."' in notes({"dashboards.enabled": True})
    assert "port-forward" not in notes({"gateway.enabled": False}) + notes({"gateway.metricsPort": 0})
