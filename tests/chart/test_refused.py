# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Wrong values are refused with their names: each by itself by the schema, those that contradict each other by the chart."""

import json

import pytest
import yaml
from chart import CHART, defaults, refusal, render, render_text, run_helm


@pytest.mark.parametrize("path, setting", [
    ("image.pullPolicy", "Sometimes"), ("image.digest", "sha256:12"), ("image.tag", "a b"), ("image.registry", "https://a/"),
    ("namespaceOverride", "A"), ("imagePullSecrets", ["plain"]),
    ("podLabels.a", 1), ("tolerations", [{"effect": "Never"}]), ("hostPaths.root", "run"), ("hostPaths.root", "/" + "r" * 60),
    ("reserve", "4"), ("reserve", 4), ("reserve", "0Gi"), ("reserve", "4 gigabytes"), ("reserve", "-1Gi"), ("compute", "both"), ("mpsVersion", "2"),
    ("annotations.enabled", "on"), ("annotations.trust", "everybody"), ("annotations.namespaces.a.maxPriority", 1001),
    ("annotations.namespaces.a.maxMemoryLimit", "40GB"), ("annotations.namespaces.a.maxMemoryLimit", "40"), ("annotations.namespaces.a.shareGroups", "yes"),
    ("node.gpus", "first"), ("node.gpus", "0,"), ("node.policy", "fair"), ("node.lanes", 0), ("node.lanes", 65),
    ("node.claims", "none"), ("node.lend", "always"), ("node.hostMemory", "none"), ("node.residents", 0), ("node.residents", "two"), ("node.slice", 0), ("node.leaseWait", -1),
    ("node.patience", "long"), ("node.eventLog", "events"), ("node.extraArgs", "--context=1"),
    ("node.capabilities", ["SYS_ADMIN"]), ("node.capabilities", ["ALL"]), ("node.updateStrategy.type", "Recreate"),
    ("node.probes.startup.periodSeconds", 0), ("node.extraEnvs", [{"value": "x"}]), ("node.extraVolumes", [{}]),
    ("devicePlugin.resource", "gpu-memory"), ("devicePlugin.granule", "1.5Gi"), ("devicePlugin.granule", "1000000"),
    ("devicePlugin.packing", "random"), ("devicePlugin.probation", -1), ("devicePlugin.ignoreXids", ["all"]),
    ("devicePlugin.foreignGpus", "no"), ("devicePlugin.driverLimit", 615), ("devicePlugin.driverCharges", "both"),
    ("devicePlugin.visibleDevices", "on"), ("devicePlugin.containerEnv.A", 1),
    ("devicePlugin.containerMounts", [{"hostPath": "/a"}]), ("devicePlugin.containerMounts", [{"hostPath": "a", "mountPath": "/a"}]),
    ("nodeConfigs", [{"config": {}}]), ("nodeConfigs", [{"name": "A"}]), ("resourceQuota.pods", 0),
    ("networkPolicy.metricsFrom", "all"), ("networkPolicy.metricsFrom", [{}]), ("networkPolicy.metricsFrom", [{"cidr": "10.0.0.0/8"}]),
    ("dashboards.enabled", "yes"), ("dashboards.labels", {"a": 1}), ("dashboards.namespace", "A"), ("serviceMonitor.interval", "15"),
    ("serviceMonitor.scrapeTimeout", "soon"), ("serviceMonitor.honorLabels", "no"), ("serviceMonitor.relabelings", [{"label": "a"}]),
    ("serviceMonitor.metricRelabelings", ["drop"]), ("prometheusRule.additionalLabels", ["a"]), ("prometheusRule.runbookUrl", "docs"),
])
def test_by_the_schema(path, setting):
    assert f"/{path.replace('.', '/')}" in refusal({path: setting})


@pytest.mark.parametrize("path, where", [
    ("polcy", "''"), ("node.polcy", "/node"), ("devicePlugin.granul", "/devicePlugin"), ("image.name", "/image"),
    ("node.probes.startup.seconds", "/node/probes/startup"), ("annotations.namespaces.a.maxLimit", "/annotations/namespaces/a"),
])
def test_a_value_that_does_not_exist(path, where):
    text = refusal({path: 1})
    assert f"at {where}" in text.replace(f"'{where}'", where) and f"'{path.rsplit('.', 1)[-1]}' not allowed" in text


@pytest.mark.parametrize("config, where", [
    ({"node": {"lanes": 65}}, "/nodeConfigs/0/config/node/lanes"), ({"image": {}}, "'image' not allowed"),
    ({"devicePlugin": {"granul": "1Gi"}}, "'granul' not allowed"),
])
def test_in_the_configuration_of_some_nodes(config, where):
    assert where in refusal({"nodeConfigs": [{"name": "a", "config": config}]})


@pytest.mark.parametrize("values, words", [
    ({"node.pool": "4Gi"}, "node.pool: allowed with reserve"),
    ({"node.eventLog": "/logs/events"}, "node.eventLog: allowed with one GPU"),
    ({"node.eventLog": "/logs/events", "node.gpus": "0,1"}, "node.eventLog: allowed with one GPU"),
    ({"node.extraArgs": ["--policy=auto"]}, "node.extraArgs '--policy'"),
    ({"node.extraArgs": ["--runtime-dir", "/x"]}, "node.extraArgs '--runtime-dir'"),
    ({"devicePlugin.extraArgs": ["--root=/x"]}, "devicePlugin.extraArgs '--root'"),
    ({"devicePlugin.containerEnv": {"LD_PRELOAD": "x.so"}}, "devicePlugin.containerEnv.LD_PRELOAD"),
    ({"devicePlugin.containerEnv": {"SLUICE_SOCKET": "/x"}}, "devicePlugin.containerEnv.SLUICE_SOCKET"),
    ({"devicePlugin.containerEnv": {"NVIDIA_GPU_MEMORY_LIMIT": "1"}}, "devicePlugin.containerEnv.NVIDIA_GPU_MEMORY_LIMIT"),
    ({"devicePlugin.extraArgs": ["--foreign-gpus=share"]}, "devicePlugin.extraArgs '--foreign-gpus'"),
    ({"devicePlugin.extraArgs": ["--gpus=0"]}, "devicePlugin.extraArgs '--gpus'"),
    ({"devicePlugin.extraArgs": ["--compute=mps"]}, "devicePlugin.extraArgs '--compute'"),
    ({"compute": "mps", "devicePlugin.containerEnv": {"CUDA_MPS_PIPE_DIRECTORY": "/x"}}, "devicePlugin.containerEnv.CUDA_MPS_PIPE_DIRECTORY"),
    ({"compute": "mps", "mpsVersion": "3", "hostPaths.root": "/" + "r" * 29}, "mpsVersion '3' is allowed with a hostPaths.root of at most 29"),
    ({"compute": "mps", "hostPaths.root": "/" + "r" * 43}, "compute: mps is allowed with a hostPaths.root of at most 43"),
    ({"devicePlugin.containerEnv": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "devicePlugin.containerEnv.NVIDIA_VISIBLE_DEVICES"),
    ({"devicePlugin.resource": "nvidia.com/gpu"}, "devicePlugin.resource 'nvidia.com/gpu'"),
    ({"devicePlugin.resource": "node.kubernetes.io/gpu"}, "devicePlugin.resource 'node.kubernetes.io/gpu'"),
    ({"annotations.enabled": False, "annotations.namespaces": {"*": {}}}, "annotations.namespaces: allowed with"),
    ({"serviceAccount.create": False}, "serviceAccount.name: needed"),
    ({"resourceQuota.enabled": True, "priorityClassName": ""}, "resourceQuota.enabled: allowed with priorityClassName"),
    ({"hostPaths.library": "/run/sluice/library"}, "hostPaths.library '/run/sluice/library'"),
    ({"hostPaths.root": "/var/lib/sluice/library"}, "hostPaths.library '/var/lib/sluice/library'"),
    ({"nodeConfigs": [{"name": "default"}]}, "nodeConfigs[0].name 'default'"),
    ({"nodeConfigs": [{"name": "a"}, {"name": "a"}]}, "nodeConfigs[1].name 'a'"),
    ({"nodeConfigs": [{"name": "a", "config": {"node": {"pool": "4Gi"}}}]}, "nodeConfigs a: node.pool"),
])
def test_by_the_chart(values, words):
    assert words in refusal(values)


@pytest.mark.parametrize("values", [
    {"nodeConfigs": [{"name": "a", "config": {"reserve": "2Gi", "node": {"pool": "4Gi"}}}]},
    {"devicePlugin.containerEnv": {"NVIDIA_VISIBLE_DEVICES": "all"}, "devicePlugin.visibleDevices": False},
    {"devicePlugin.containerEnv": {"NVIDIA_GPU_MEMORY_LIMIT": "1"}, "devicePlugin.driverLimit": False},
    {"serviceAccount.create": False, "annotations.enabled": False},
    {"hostPaths.library": "/run/sluice-library"},
    {"namespaceOverride": "default"},
    {"node.extraArgs": ["--oracle", "/tmp/oracle"]},
    {"global": {"imageRegistry": "a.example.com", "of a parent chart": 1}},
])
def test_accepted(values):
    render(values)


def test_an_old_kubernetes():
    assert "kubeVersion: >=1.26.0" in refusal({}, ["--kube-version", "1.25.16"])
    assert render_text({}, arguments=["--kube-version", "1.36.0"]) == render_text({})


def test_lint():
    done = run_helm(["lint", "--strict"], {}, "--kube-version", "1.36.0")
    assert done.returncode == 0, done.stdout + done.stderr


def strict(schema, path=""):
    """The paths of what names its fields and lets others in."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            yield path
        for key, node in schema.items():
            yield from strict(node, f"{path}/{key}")
    elif isinstance(schema, list):
        for node in schema:
            yield from strict(node, path)


def test_the_schema_is_strict():
    schema = json.loads((CHART / "values.schema.json").read_text())
    # A parent chart's values, and what is Kubernetes's own.
    assert sorted(strict(schema)) == ["/definitions/named/items", "/definitions/volumeMounts/items", "/properties/global"]


def test_the_schema_knows_no_more_than_there_is():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(schema["properties"]) == set(values)
    for name in ("node", "devicePlugin"):
        assert set(schema["definitions"][name]["properties"]) == set(values[name])


def test_defaults_are_accepted():
    assert defaults().documents
