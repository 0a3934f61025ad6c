# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the pods may do: no more than README.md of the chart gives a reason for, whatever the values."""

import pytest
from chart import defaults, render, value

EVERYTHING = {
    "annotations.namespaces": {"*": {"maxPriority": 0}}, "image.digest": "sha256:" + "0" * 64,
    "imagePullSecrets": [{"name": "own"}], "podAnnotations": {"a": "b"}, "podLabels": {"a": "b"},
    "podSecurityContext": {"seLinuxOptions": {"type": "spc_t"}}, "runtimeClassName": "nvidia", "reserve": "4Gi",
    "node.gpus": "0", "node.pool": "40Gi", "node.hostMemory": "0", "node.leaseUnit": "8Mi", "node.handle": "32Mi",
    "node.eventLog": "/logs/events", "node.extraEnvs": [{"name": "A", "value": "b"}],
    "node.extraVolumes": [{"name": "logs", "emptyDir": {}}], "node.capabilities": ["SYS_PTRACE"],
    "node.extraVolumeMounts": [{"name": "logs", "mountPath": "/logs"}], "node.resources": {"limits": {"memory": "8Gi"}},
    "devicePlugin.ignoreXids": [13], "devicePlugin.containerEnv": {"A": "b"},
    "devicePlugin.containerMounts": [{"hostPath": "/a", "mountPath": "/b"}],
    "devicePlugin.extraVolumes": [{"name": "driver", "hostPath": {"path": "/driver"}}],
    "devicePlugin.extraVolumeMounts": [{"name": "driver", "mountPath": "/driver"}],
    "dashboards.enabled": True, "dashboards.namespace": "sluice", "prometheusRule.enabled": True, "prometheusRule.additionalLabels": {"a": "b"},
    "serviceMonitor.enabled": True, "serviceMonitor.interval": "15s", "serviceMonitor.scrapeTimeout": "10s",
    "serviceMonitor.relabelings": [{"action": "labeldrop", "regex": "endpoint"}],
    "serviceMonitor.metricRelabelings": [{"sourceLabels": ["__name__"], "regex": "exposer_.*", "action": "drop"}],
    "networkPolicy.metricsFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"podSelector": {}}],
    "nodeSelector": {"pool": "training"}, "resourceQuota.enabled": True, "podDisruptionBudget.enabled": True, "serviceAccount.annotations": {"a": "b"},
    "nodeConfigs": [{"name": "h200", "config": {"reserve": "8Gi", "node": {"gpus": 1}, "devicePlugin": {"granule": "2Gi"}}},
                    {"name": "plain"}],
}
RENDERINGS = {"defaults": {}, "everything": EVERYTHING, "without annotations": {"annotations.enabled": False}}


@pytest.fixture(params=RENDERINGS, scope="module")
def chart(request):
    return render(RENDERINGS[request.param])


def pods(rendered):
    return [(each, each["spec"]["template"]["spec"]) for each in rendered.all("DaemonSet")]


def component(daemon_set):
    return daemon_set["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]


def test_kinds(chart):
    assert {document["kind"] for document in chart.documents} <= {
        "DaemonSet", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "NetworkPolicy", "ResourceQuota",
        "Service", "ServiceMonitor", "PrometheusRule", "PodDisruptionBudget"}


def test_everything_is_the_releases(chart):
    for document in chart.documents:
        metadata = document["metadata"]
        assert metadata["name"].startswith("sluice")
        assert metadata.get("namespace") == (None if document["kind"].startswith("Cluster") else "sluice")
        assert metadata["labels"]["app.kubernetes.io/instance"] == "sluice"
        assert metadata["labels"]["helm.sh/chart"] == "sluice-0.1.0"


def test_pods(chart):
    for daemon_set, pod in pods(chart):
        # Whoever makes a Service in the namespace puts no variables into these containers.
        assert pod["enableServiceLinks"] is False
        assert not pod.get("hostNetwork") and not pod.get("hostIPC")
        assert pod.get("hostPID", False) == (component(daemon_set) == "node")


def test_containers(chart):
    for daemon_set, pod in pods(chart):
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            context = dict(container["securityContext"])
            capabilities = context.pop("capabilities")
            assert capabilities["drop"] == ["ALL"]
            assert capabilities.get("add", []) in ([], ["SYS_PTRACE"] if component(daemon_set) == "node" else [])
            assert context == {"runAsUser": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                               "seccompProfile": {"type": "RuntimeDefault"}}
            # Nothing but the metrics is on a network.
            assert [port["name"] for port in container.get("ports", [])] == \
                (["metrics"] if container["name"] in ("gateway", "device-plugin") else [])


def test_no_capability_unless_asked_for():
    for daemon_set in defaults().both:
        assert all("add" not in container["securityContext"]["capabilities"] for container in daemon_set.containers)


def test_folders_of_the_node():
    paths = {daemon_set.name: sorted(volume["hostPath"]["path"] for volume in daemon_set.volumes.values() if "hostPath" in volume)
             for daemon_set in defaults().both}
    assert paths == {"sluice-node": ["/run/sluice"],
                     "sluice-device-plugin": ["/run/sluice", "/var/lib/kubelet/device-plugins",
                                              "/var/lib/kubelet/pod-resources", "/var/lib/sluice/library"]}


def test_tokens(chart):
    for daemon_set, pod in pods(chart):
        reads_pods = component(daemon_set) == "device-plugin" and bool(chart.all("ClusterRole"))
        assert pod["automountServiceAccountToken"] is reads_pods
    assert all(account["automountServiceAccountToken"] is False for account in chart.all("ServiceAccount"))


def test_role():
    assert defaults().one("ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]


def test_binding():
    binding = defaults().one("ClusterRoleBinding")
    assert binding["roleRef"]["name"] == defaults().one("ClusterRole")["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "sluice", "namespace": "sluice"}]
    assert defaults().one("ServiceAccount")["metadata"]["name"] == "sluice"


@value("rbac.create", False)
def test_no_role(rendered):
    assert not rendered.all("ClusterRole") and not rendered.all("ClusterRoleBinding")
    assert rendered.all("ServiceAccount")


@value("serviceAccount.create", False, beside={"serviceAccount.name": "mine"})
def test_an_account_that_is_there(rendered):
    assert not rendered.all("ServiceAccount")
    assert all(each.pod["serviceAccountName"] == "mine" for each in rendered.both)


@value("serviceAccount.name", "mine")
def test_name_of_the_account(rendered):
    assert rendered.one("ServiceAccount")["metadata"]["name"] == "mine"
    assert rendered.one("ClusterRoleBinding")["subjects"][0]["name"] == "mine"
    assert all(each.pod["serviceAccountName"] == "mine" for each in rendered.both)


@value("serviceAccount.annotations", {"a": "b"})
def test_annotations_of_the_account(rendered):
    assert rendered.one("ServiceAccount")["metadata"]["annotations"] == {"a": "b"}


def test_no_connection_is_let_in_but_to_the_metrics():
    spec = defaults().one("NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress"] and spec["ingress"] == [{"ports": [{"port": 9452}, {"port": 9454}]}]
    for daemon_set in defaults().both:
        assert spec["podSelector"]["matchLabels"].items() <= daemon_set.template["metadata"]["labels"].items()


MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


@value("networkPolicy.metricsFrom", [MONITORING])
def test_who_may_read_the_metrics(rendered):
    (rule,) = rendered.one("NetworkPolicy")["spec"]["ingress"]
    assert rule == {"ports": [{"port": 9452}, {"port": 9454}], "from": [MONITORING]}


@value("networkPolicy.enabled", False)
def test_no_network_policy(rendered):
    assert not rendered.all("NetworkPolicy")


@value("podDisruptionBudget.enabled", True)
def test_no_eviction_of_the_daemons(rendered):
    spec = rendered.one("PodDisruptionBudget")["spec"]
    # More than there are: none may go. A share, or a number of those that may, is refused for DaemonSets.
    assert spec["minAvailable"] == 2**31 - 1
    chosen = spec["selector"]["matchLabels"].items()
    assert chosen <= rendered.node.template["metadata"]["labels"].items()
    assert not chosen <= rendered.plugin.template["metadata"]["labels"].items()


@value("resourceQuota.enabled", True)
def test_quota(rendered):
    spec = rendered.one("ResourceQuota")["spec"]
    assert spec["hard"] == {"pods": "1000"}
    assert spec["scopeSelector"]["matchExpressions"] == [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]


@value("resourceQuota.pods", 2000000, beside={"resourceQuota.enabled": True})
def test_pods_of_the_quota(rendered):
    assert rendered.one("ResourceQuota")["spec"]["hard"] == {"pods": "2000000"}
