# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the objects are called, where they are, and their labels."""

from chart import defaults, render, run_helm, value


def names(rendered):
    return sorted(f"{document['kind']}/{document['metadata']['name']}" for document in rendered.documents)


def test_default():
    assert names(defaults()) == [
        "ClusterRole/sluice-sluice-device-plugin", "ClusterRoleBinding/sluice-sluice-device-plugin",
        "DaemonSet/sluice-device-plugin", "DaemonSet/sluice-node", "NetworkPolicy/sluice", "ServiceAccount/sluice"]


def test_the_release_is_in_the_names():
    done = run_helm(["template", "lab"], {}, "--kube-version", "1.26.0")
    assert "name: lab-sluice-node" in done.stdout


@value("nameOverride", "lender")
def test_name(rendered):
    assert rendered.node.name == "sluice-lender-node"
    assert rendered.node.template["metadata"]["labels"]["app.kubernetes.io/name"] == "lender"


@value("fullnameOverride", "lender")
def test_full_name(rendered):
    assert [each.name for each in rendered.both] == ["lender-node", "lender-device-plugin"]
    assert rendered.one("NetworkPolicy")["metadata"]["name"] == "lender"


@value("namespaceOverride", "gpu-system")
def test_namespace(rendered):
    of_the_cluster = {"ClusterRole", "ClusterRoleBinding"}
    for document in rendered.documents:
        expected = None if document["kind"] in of_the_cluster else "gpu-system"
        assert document["metadata"].get("namespace") == expected
    assert rendered.one("ClusterRoleBinding")["subjects"][0]["namespace"] == "gpu-system"
    assert rendered.one("ClusterRole")["metadata"]["name"].startswith("gpu-system-")


def test_labels():
    for document in defaults().documents:
        labels = document["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "sluice"
        assert labels["app.kubernetes.io/version"] == "0.1.0"
        assert labels["app.kubernetes.io/part-of"] == "sluice"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
    components = [each.document["metadata"]["labels"]["app.kubernetes.io/component"] for each in defaults().both]
    assert components == ["node", "device-plugin"]


def test_selectors_are_what_they_always_were():
    """A DaemonSet with another selector could not be upgraded to."""
    for daemon_set, component in zip(defaults().both, ["node", "device-plugin"]):
        assert daemon_set.document["spec"]["selector"]["matchLabels"] == {
            "app.kubernetes.io/name": "sluice", "app.kubernetes.io/instance": "sluice",
            "app.kubernetes.io/component": component, "sluice.dev/config": "default"}


def test_the_version_is_in_no_pod():
    """A chart that changes nothing in the pods restarts none."""
    for daemon_set in defaults().both:
        assert daemon_set.template["metadata"]["labels"] == daemon_set.document["spec"]["selector"]["matchLabels"]
