# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Pods of the tests."""

from support.chart import RESOURCE
from support.images import TRAINER


def container(granules=0, command=("train",), name="train"):
    limits = {RESOURCE: str(granules)} if granules else {}
    return {"name": name, "image": TRAINER, "imagePullPolicy": "Never", "command": list(command),
            "resources": {"limits": limits}}


def pod(name, *containers, annotations=None, init=(), namespace="default", **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": list(containers),
                     "initContainers": list(init), **spec}}


def trainer(name, granules, limit=None, model="small-a", iterations=20, seed=1, **more):
    """The example trainer, as it is; `limit`: of its memory, a Kubernetes quantity."""
    annotations = {"sluice.dev/memory-limit": limit} if limit else {}
    annotations.update(more.pop("annotations", {}))
    command = ["train", "--model", model, "--iterations", str(iterations), "--seed", str(seed)]
    return pod(name, container(granules, command), annotations=annotations, **more)


def as_job(pod):
    """The pod, and another one in its place where it is refused or lost."""
    about = pod["metadata"]
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": about["name"], "namespace": about["namespace"]},
            "spec": {"backoffLimit": 6, "template": {"metadata": {"annotations": about["annotations"]}, "spec": pod["spec"]}}}


def prober(name, granules, *command, annotations=None, **more):
    return pod(name, container(granules, ["prober", *command]), annotations=annotations, **more)


def values(text):
    """The lines "key=value" of a prober, numbers as such; of a key that comes several times all."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.replace("_", "").isalnum():
            found.setdefault(key, []).append(int(value) if value.isdigit() else value)
    return found


def losses(text):
    return [line for line in text.splitlines() if line.startswith("loss ")]
