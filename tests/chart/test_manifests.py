# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Kubernetes's own description of its objects knows all that is rendered, and manifests/ is what it should be."""

import os
import re
import subprocess

import pytest
import yaml
from chart import REPO, render_text
from test_rights import RENDERINGS

EXAMPLES = sorted((REPO / "manifests" / "examples").glob("*.yaml"))


def kubeconform(text):
    schemas = os.environ["SLUICE_SCHEMAS"] + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"
    return subprocess.run([os.path.join(os.environ["SLUICE_TOOLS"], "kubeconform"), "-strict", "-schema-location", schemas, "-"],
                          input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", RENDERINGS)
def test_rendered(name):
    done = kubeconform(render_text(RENDERINGS[name]))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", [REPO / "manifests" / "sluice.yaml", *EXAMPLES], ids=lambda file: file.name)
def test_file(file):
    done = kubeconform(file.read_text())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("right, wrong", [
    ("hostPID: true", "hostPid: true"), ("type: OnDelete", "type: [OnDelete]"), ("apiVersion: apps/v1", "apiVersion: apps/v2"),
    ("failureThreshold: 30", "failureThreshold: many"), ("kind: ServiceAccount", "kind: Account"),
])
def test_would_be_noticed(right, wrong):
    text = render_text({})
    assert right in text
    assert kubeconform(text.replace(right, wrong)).returncode != 0


@pytest.mark.parametrize("right, wrong", [("jobLabel:", "joblabel:"), ("honorLabels: true", 'honorLabels: "true"'), ("alert: Sluice", "alarm: Sluice")])
def test_would_be_noticed_in_what_others_define(right, wrong):
    text = render_text(RENDERINGS["everything"])
    assert right in text
    assert kubeconform(text.replace(right, wrong, 1)).returncode != 0


def test_the_manifest_is_the_charts():
    done = subprocess.run([REPO / "scripts" / "manifests", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_manifest_is_nobodys_release():
    text = (REPO / "manifests" / "sluice.yaml").read_text()
    assert "helm.sh/" not in text and "managed-by" not in text
    documents = list(yaml.safe_load_all(text))
    assert documents[0]["kind"] == "Namespace"
    assert {each["metadata"].get("namespace", "sluice") for each in documents} == {"sluice"}


def annotation_keys():
    """Those that the device plugin knows."""
    source = (REPO / "deviceplugin" / "pods" / "annotations.cc").read_text()
    return set(re.search(r'kKeys =\s*"([a-z, -]+)"', source)[1].split(", "))


def pods_of(document):
    template = document["spec"].get("template", document)
    return template["metadata"].get("annotations", {}), template["spec"]


def test_examples_have_every_annotation_and_no_other():
    used = set()
    for file in EXAMPLES:
        for document in yaml.safe_load_all(file.read_text()):
            annotations, pod = pods_of(document)
            names = {container["name"] for container in [*pod.get("initContainers", []), *pod["containers"]]}
            assert not document["metadata"].get("annotations") or document["kind"] == "Pod"
            for field, setting in annotations.items():
                assert isinstance(setting, str), f"{file.name}: {field}"
                found = re.fullmatch(r"sluice\.dev/(?:container\.([a-z-]+)\.)?([a-z-]+)", field)
                assert found and (found[1] is None or found[1] in names), f"{file.name}: {field}"
                used.add(found[2])
    assert used == annotation_keys()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example_asks_for_gpu_memory(file):
    for document in yaml.safe_load_all(file.read_text()):
        _, pod = pods_of(document)
        asked = [container.get("resources", {}).get("limits", {}).get("sluice.dev/gpu-memory") for container in pod["containers"]]
        assert all(isinstance(granules, int) for granules in asked)
