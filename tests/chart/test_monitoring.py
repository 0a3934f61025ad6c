# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Dashboards, alerts, and how Prometheus's operator finds the metrics."""

import json
import shutil
import subprocess

import pytest
import yaml
from chart import REPO, WITHOUT_OPERATOR, defaults, render, value

DASHBOARDS = REPO / "dashboards"
ON = {"dashboards.enabled": True, "serviceMonitor.enabled": True, "prometheusRule.enabled": True}
KINDS = ["ConfigMap", "PrometheusRule", "Service", "ServiceMonitor"]
MOST_BYTES = 1 << 20  # of a ConfigMap, by the API server


def kinds(rendered):
    return {document["kind"] for document in rendered.documents} & set(KINDS)


def services(rendered):
    return {each["metadata"]["name"]: each["spec"] for each in rendered.all("Service")}


def endpoint(rendered):
    (only,) = rendered.one("ServiceMonitor")["spec"]["endpoints"]
    return only


def test_nothing_of_it_unless_asked_for():
    assert kinds(defaults()) == set()
    assert kinds(render(ON)) == set(KINDS)


def test_a_cluster_without_the_operator():
    assert kinds(render(ON, arguments=WITHOUT_OPERATOR)) == {"ConfigMap"}


@value("dashboards.enabled", True)
def test_dashboards(rendered):
    """As they are, whatever is between braces in them."""
    maps = rendered.all("ConfigMap")
    files = {file.name: file.read_text(encoding="utf-8") for file in DASHBOARDS.glob("*.json")}
    assert len(files) == 5
    assert {name: text for each in maps for name, text in each["data"].items()} == files
    assert any("{{" in text for text in files.values())
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"grafana_folder": "Sluice"}
        assert len(json.dumps(each)) < MOST_BYTES


@value("dashboards.labels", {"grafana_dashboard": "", "team": "gpu"}, beside={"dashboards.enabled": True})
def test_labels_of_dashboards(rendered):
    for each in rendered.all("ConfigMap"):
        assert each["metadata"]["labels"]["team"] == "gpu" and each["metadata"]["labels"]["grafana_dashboard"] == ""
        assert each["metadata"]["labels"]["app.kubernetes.io/name"] == "sluice"


@value("dashboards.annotations", {"grafana_folder": "GPUs"}, beside={"dashboards.enabled": True})
def test_folder(rendered):
    assert {each["metadata"]["annotations"]["grafana_folder"] for each in rendered.all("ConfigMap")} == {"GPUs"}


@value("dashboards.namespace", "monitoring", beside={"dashboards.enabled": True})
def test_namespace_of_dashboards(rendered):
    assert {each["metadata"]["namespace"] for each in rendered.all("ConfigMap")} == {"monitoring"}
    assert rendered.node.document["metadata"]["namespace"] == "sluice"


@value("serviceMonitor.enabled", True)
def test_monitor(rendered):
    """It finds the Services, which find the pods, which have the port."""
    spec = rendered.one("ServiceMonitor")["spec"]
    assert endpoint(rendered) == {"port": "metrics", "path": "/metrics", "honorLabels": True}
    found = rendered.all("Service")
    assert sorted(each["metadata"]["name"] for each in found) == ["sluice-device-plugin", "sluice-node"]
    for each in found:
        labels = each["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        # Alerts ask for up{job=~"sluice.*"}.
        assert labels[spec["jobLabel"]] == "sluice"
        assert each["spec"]["clusterIP"] == "None"
        (port,) = each["spec"]["ports"]
        assert port["name"] == port["targetPort"] == "metrics"
        daemon_set = rendered.daemon_set(labels["app.kubernetes.io/component"])
        assert each["spec"]["selector"].items() <= daemon_set.template["metadata"]["labels"].items()
        ports = [port for container in daemon_set.containers for port in container.get("ports", [])]
        assert ports == [{"name": "metrics", "containerPort": port["port"]}]


def test_it_finds_nodes_of_all_configurations():
    rendered = render({**ON, "nodeConfigs": [{"name": "a", "config": {"devicePlugin": {"metricsPort": 9000}}}]})
    for component in ("node", "device-plugin"):
        selector = services(rendered)[f"sluice-{component}"]["selector"]
        for config in ("default", "a"):
            assert selector.items() <= rendered.daemon_set(component, config).template["metadata"]["labels"].items()


@pytest.mark.parametrize("values, expected", [
    ({"gateway.enabled": False}, ["sluice-device-plugin"]), ({"gateway.metricsPort": 0}, ["sluice-device-plugin"]),
    ({"devicePlugin.metricsPort": 0}, ["sluice-node"]),
    ({"devicePlugin.metricsPort": 0, "nodeConfigs": [{"name": "a", "config": {"devicePlugin": {"metricsPort": 9000}}}]},
     ["sluice-device-plugin", "sluice-node"]),
])
def test_no_service_where_nobody_listens(values, expected):
    assert sorted(services(render({**ON, **values}))) == expected


@value("serviceMonitor.interval", "1m30s", beside={"serviceMonitor.enabled": True})
def test_interval(rendered):
    assert endpoint(rendered)["interval"] == "1m30s"


@value("serviceMonitor.scrapeTimeout", "5s", beside={"serviceMonitor.enabled": True})
def test_timeout(rendered):
    assert endpoint(rendered)["scrapeTimeout"] == "5s"


@value("serviceMonitor.honorLabels", False, beside={"serviceMonitor.enabled": True})
def test_labels_of_the_pod_that_tells(rendered):
    assert endpoint(rendered)["honorLabels"] is False


@value("serviceMonitor.additionalLabels", {"release": "kube-prometheus-stack"}, beside={"serviceMonitor.enabled": True})
def test_how_the_monitor_is_found(rendered):
    labels = rendered.one("ServiceMonitor")["metadata"]["labels"]
    assert labels["release"] == "kube-prometheus-stack" and labels["app.kubernetes.io/name"] == "sluice"


RULE = [{"action": "labeldrop", "regex": "endpoint"}]


@value("serviceMonitor.relabelings", RULE, beside={"serviceMonitor.enabled": True})
def test_relabelings(rendered):
    assert endpoint(rendered)["relabelings"] == RULE and "metricRelabelings" not in endpoint(rendered)


@value("serviceMonitor.metricRelabelings", RULE, beside={"serviceMonitor.enabled": True})
def test_metric_relabelings(rendered):
    assert endpoint(rendered)["metricRelabelings"] == RULE and "relabelings" not in endpoint(rendered)


@value("prometheusRule.enabled", True)
def test_alerts(rendered):
    """As they are, whatever is between braces in them."""
    wanted = yaml.safe_load((DASHBOARDS / "rules" / "sluice.yaml").read_text(encoding="utf-8"))
    assert rendered.one("PrometheusRule")["spec"] == wanted
    assert "{{ $labels.node }}" in json.dumps(wanted)


@value("prometheusRule.additionalLabels", {"release": "kube-prometheus-stack"}, beside={"prometheusRule.enabled": True})
def test_how_the_alerts_are_found(rendered):
    labels = rendered.one("PrometheusRule")["metadata"]["labels"]
    assert labels["release"] == "kube-prometheus-stack" and labels["app.kubernetes.io/name"] == "sluice"


@value("prometheusRule.runbookUrl", "https://docs.example.com/sluice/", beside={"prometheusRule.enabled": True})
def test_where_the_runbooks_are(rendered):
    rules = [rule for group in rendered.one("PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    assert {rule["annotations"]["runbook_url"] for rule in rules} == {f"https://docs.example.com/sluice/{rule['alert']}.md" for rule in rules}


def test_the_charts_files_are_copies():
    done = subprocess.run([REPO / "scripts" / "dashboards", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_copy_that_is_not_one_is_noticed(tmp_path):
    for folder in ("scripts", "dashboards", "charts/sluice/dashboards", "charts/sluice/rules"):
        shutil.copytree(REPO / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "scripts" / "dashboards"
    (tmp_path / "charts/sluice/rules/sluice.yaml").write_text("groups: []\n")
    done = subprocess.run([script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "scripts/dashboards copies it" in done.stderr
    assert subprocess.run([script], check=False).returncode == 0
    assert subprocess.run([script, "--check"], check=False).returncode == 0
