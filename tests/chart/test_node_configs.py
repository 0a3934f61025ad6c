# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Nodes with a label get a pair of DaemonSets of their own, and the other pair keeps away from them."""

from chart import defaults, render, value

CONFIGS = [{"name": "h200", "config": {"reserve": "8Gi", "node": {"policy": "auto", "probes": {"liveness": {"periodSeconds": 60}}},
                                       "devicePlugin": {"granule": "2Gi", "containerEnv": {"A": "b"}}}},
           {"name": "plain"}]


def terms(daemon_set):
    affinity = daemon_set.pod["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


@value("nodeConfigs", CONFIGS)
def test_names(rendered):
    assert sorted(each["metadata"]["name"] for each in rendered.all("DaemonSet")) == [
        "sluice-device-plugin", "sluice-device-plugin-h200", "sluice-device-plugin-plain",
        "sluice-node", "sluice-node-h200", "sluice-node-plain"]


@value("nodeConfigs", CONFIGS)
def test_each_node_has_one_pair(rendered):
    away = {"key": "sluice.dev/config", "operator": "NotIn", "values": ["h200", "plain"]}
    for daemon_set in rendered.both:
        # Terms are alternatives.
        assert len(terms(daemon_set)) == 2
        assert all(away in term["matchExpressions"] for term in terms(daemon_set))
        assert "nodeSelector" not in daemon_set.pod
    for config in ("h200", "plain"):
        for component in ("node", "device-plugin"):
            daemon_set = rendered.daemon_set(component, config)
            assert daemon_set.pod["nodeSelector"] == {"sluice.dev/config": config}
            assert terms(daemon_set) == terms(defaults().node)
            assert daemon_set.template["metadata"]["labels"]["sluice.dev/config"] == config


def test_without_other_affinity():
    rendered = render({"affinity": None, "nodeConfigs": [{"name": "a"}]})
    away = {"key": "sluice.dev/config", "operator": "NotIn", "values": ["a"]}
    assert terms(rendered.node) == [{"matchExpressions": [away]}]
    assert "affinity" not in rendered.daemon_set("node", "a").pod


@value("nodeConfigs", CONFIGS)
def test_what_differs(rendered):
    node, plugin = rendered.daemon_set("node", "h200"), rendered.daemon_set("device-plugin", "h200")
    assert {"--policy=auto", "--reserve=8Gi", "--lanes=2"} < set(node.args)
    assert {"--granule=2Gi", "--reserve=8Gi", "--env=A=b", "--packing=pack"} < set(plugin.args)
    assert node.container["livenessProbe"]["periodSeconds"] == 60
    assert node.container["livenessProbe"]["timeoutSeconds"] == 10


def test_what_is_empty_goes_before_too():
    rendered = render({"reserve": "8Gi", "devicePlugin.ignoreXids": [13], "nodeConfigs": [{"name": "a", "config": {
        "reserve": "", "node": {"leaseWait": 0}, "devicePlugin": {"visibleDevices": False, "ignoreXids": []}}}]})
    arguments = rendered.daemon_set("node", "a").args + rendered.daemon_set("device-plugin", "a").args
    assert {"--lease-wait=0", "--visible-devices=off"} < set(arguments)
    assert not any(argument.startswith(("--reserve", "--ignore-xid")) for argument in arguments)


@value("nodeConfigs", CONFIGS)
def test_nothing_else_differs(rendered):
    """One pair's values are not another's."""
    for each, default in zip(rendered.both, defaults().both):
        assert each.container == default.container
    assert rendered.daemon_set("node", "plain").container == defaults().node.container
    assert rendered.daemon_set("device-plugin", "plain").container == defaults().plugin.container


@value("nodeConfigs", CONFIGS)
def test_no_pod_belongs_to_two(rendered):
    selectors = [each["spec"]["selector"]["matchLabels"] for each in rendered.all("DaemonSet")]
    for each in rendered.all("DaemonSet"):
        labels = each["spec"]["template"]["metadata"]["labels"].items()
        assert sum(selector.items() <= labels for selector in selectors) == 1
