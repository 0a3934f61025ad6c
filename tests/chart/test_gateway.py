# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The container beside the daemons that speaks with who is elsewhere."""

from chart import defaults, value


def test_default():
    (gateway,) = defaults().node.beside
    assert gateway["name"] == "gateway"
    assert gateway["command"] == ["/opt/sluice/bin/sluice-gateway"]
    assert gateway["args"] == ["--runtime-dir=/run/sluice-node", "--admin-socket=/run/sluice-node/admin.sock",
                               "--metrics=0.0.0.0:9452"]
    assert gateway["ports"] == [{"name": "metrics", "containerPort": 9452}]
    # It needs the daemons' sockets and nothing else: no grants, no GPU.
    assert [mount["name"] for mount in gateway["volumeMounts"]] == ["daemons"]
    assert "env" not in gateway
    assert gateway["securityContext"] == defaults().node.container["securityContext"]
    assert defaults().one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": 9452}]}]


@value("gateway.enabled", False)
def test_none(rendered):
    assert not rendered.node.beside
    assert "ingress" not in rendered.one("NetworkPolicy")["spec"]


@value("gateway.metricsPort", 9000)
def test_port(rendered):
    (gateway,) = rendered.node.beside
    assert gateway["args"][-1] == "--metrics=0.0.0.0:9000"
    assert gateway["ports"] == [{"name": "metrics", "containerPort": 9000}]
    assert rendered.one("NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"port": 9000}]}]


@value("gateway.metricsPort", 0)
def test_no_metrics(rendered):
    (gateway,) = rendered.node.beside
    assert gateway["args"][-1] == "--metrics=off"
    assert "ports" not in gateway
    assert "ingress" not in rendered.one("NetworkPolicy")["spec"]


@value("gateway.resources", {"limits": {"memory": "64Mi"}})
def test_resources(rendered):
    assert rendered.node.beside[0]["resources"]["limits"] == {"memory": "64Mi"}
