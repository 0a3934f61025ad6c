# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The container beside the daemons that speaks with who is elsewhere."""

from chart import defaults, render, value


def test_default():
    (gateway,) = defaults().node.beside
    assert gateway["name"] == "gateway"
    assert gateway["command"] == ["/opt/sluice/bin/sluice-gateway"]
    assert gateway["args"] == ["--runtime-dir=/run/sluice-node", "--admin-socket=/run/sluice-node/admin.sock",
                               "--page=127.0.0.1:9453", "--metrics=0.0.0.0:9452", "--node=$(NODE_NAME)"]
    assert gateway["ports"] == [{"name": "metrics", "containerPort": 9452}]
    # It needs the daemons' sockets and nothing else: no grants, no GPU.
    assert [mount["name"] for mount in gateway["volumeMounts"]] == ["daemons"]
    assert gateway["env"] == [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    assert gateway["securityContext"] == defaults().node.container["securityContext"]
    assert defaults().one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": 9452}, {"port": 9454}]}]


@value("gateway.enabled", False)
def test_none(rendered):
    assert not rendered.node.beside
    assert rendered.one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": 9454}]}]


@value("gateway.metricsPort", 9000)
def test_port(rendered):
    (gateway,) = rendered.node.beside
    assert gateway["args"][-2] == "--metrics=0.0.0.0:9000"
    assert gateway["ports"] == [{"name": "metrics", "containerPort": 9000}]
    assert rendered.one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": 9000}, {"port": 9454}]}]


@value("gateway.metricsPort", 0)
def test_no_metrics(rendered):
    (gateway,) = rendered.node.beside
    assert gateway["args"][-1] == "--metrics=off"
    assert "ports" not in gateway
    assert "env" not in gateway
    assert rendered.one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": 9454}]}]


@value("gateway.pagePort", 9001)
def test_page_port(rendered):
    (gateway,) = rendered.node.beside
    assert "--page=127.0.0.1:9001" in gateway["args"]
    # Of the pod's loopback: nobody reaches it but by forwarding.
    assert all(port["containerPort"] != 9001 for port in gateway["ports"])
    (rule,) = rendered.one("NetworkPolicy")["spec"]["ingress"]
    assert {"port": 9001} not in rule["ports"]


@value("gateway.pagePort", 0)
def test_no_page(rendered):
    (gateway,) = rendered.node.beside
    assert "--page=off" in gateway["args"]


@value("gateway.resources", {"limits": {"memory": "64Mi"}})
def test_resources(rendered):
    assert rendered.node.beside[0]["resources"]["limits"] == {"memory": "64Mi"}


@value("metricsAddress", "[::]")
def test_address(rendered):
    assert "--metrics=[::]:9452" in rendered.node.beside[0]["args"]
    assert "--metrics=[::]:9454" in rendered.plugin.args


def test_nobody_listens_without_metrics():
    rendered = render({"gateway.metricsPort": 0, "devicePlugin.metricsPort": 0})
    assert "ingress" not in rendered.one("NetworkPolicy")["spec"]
