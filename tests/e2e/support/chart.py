# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Sluice on the cluster, as a user installs it: the chart by Helm, with the values that simulated GPUs need."""

import copy
import json
import pathlib
import subprocess
import urllib.request

import yaml

from support.images import REPOSITORY
from support.processes import descendants_named, until

SLUICE = REPOSITORY / "build/release/bin/sluice"

NAMESPACE = "sluice"
RESOURCE = "sluice.dev/gpu-memory"
# Whose pods may say less in annotations than others.
LIMITED = "limited"


class Chart:
    def __init__(self, cluster, gpus):
        self._cluster = cluster
        self._gpus = gpus
        self.values = self._values()

    def _values(self):
        folder = str(self._gpus.folder)
        variables = [{"name": name, "value": value} for name, value in self._gpus.environment.items()]
        volumes = [{"name": "simulated", "hostPath": {"path": folder, "type": "Directory"}}]
        mounts = [{"name": "simulated", "mountPath": folder}]
        beside = {"extraEnvs": variables, "extraVolumes": volumes, "extraVolumeMounts": mounts,
                  # What else runs on two cores is not Sluice's to weigh.
                  "resources": {}}
        return {
            "image": {"pullPolicy": "Never"},
            "affinity": None,
            "reserve": "16Mi",
            "annotations": {"namespaces": {LIMITED: {"maxMemoryLimit": "20Mi", "maxPriority": 5, "shareGroups": False}}},
            "node": {**beside, "gpus": "0", "eventLog": f"{folder}/events.jsonl", "leaseUnit": "256Ki", "handle": "2Mi", "hostMemory": "64Mi",
                     # Some tests hold memory and do nothing with it.
                     "patience": 5},
            # Soon, so that tests show who is not taken for one that is over.
            "devicePlugin": {**beside, "extraArgs": ["--unseen=2"], "granule": "1Mi", "containerEnv": self._gpus.environment,
                             "containerMounts": [{"hostPath": folder, "mountPath": folder, "readOnly": False}]}}

    def install(self):
        self._helm("install", "sluice", str(REPOSITORY / "charts/sluice"), "--namespace", NAMESPACE,
                   "--create-namespace", "--values", self._values_file(), "--wait", "--timeout", "120s")
        self._until_ready()

    def plugin_sees(self, environment):
        """The device plugin is restarted with these variables, and offers all that it sees."""
        before = copy.deepcopy(self.values)
        self.values["devicePlugin"]["extraEnvs"] = [{"name": name, "value": value} for name, value in environment.items()]
        # Not of a daemon that is there: its pod stays. The log is for one GPU alone.
        self.values["node"].update(gpus="all", eventLog="")
        self.upgrade()
        self.values = before

    def upgrade(self, *arguments, chart=REPOSITORY / "charts/sluice"):
        self._helm("upgrade", "sluice", str(chart), "--namespace", NAMESPACE,
                   "--values", self._values_file(), "--wait", "--timeout", "120s", *arguments)
        self._until_ready()

    def uninstall(self):
        self._helm("uninstall", "sluice", "--namespace", NAMESPACE, "--wait", "--timeout", "120s")

    def audit(self):
        """What `sluice check-log` finds in the daemon's log: (every promise was kept, text)."""
        done = subprocess.run([SLUICE, "check-log", self._gpus.folder / "events.jsonl"],
                              capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    def status(self):
        return json.loads(self.node("/opt/sluice/bin/sluice", "status", "--json", "--runtime-dir", "/run/sluice-node/0").stdout)

    def status_now(self):
        """The same without kubelet; None while none serves."""
        for pid in descendants_named("sluice-noded"):
            done = subprocess.run([SLUICE, "status", "--json", "--runtime-dir", f"/proc/{pid}/root/run/sluice-node/0"],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)
        return None

    def metrics(self):
        """What Prometheus would read, from the pod's own address."""
        (pod,) = self._cluster.kubectl.get("pods", "--namespace", NAMESPACE, "--selector",
                                           "app.kubernetes.io/component=node")["items"]
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:9452/metrics", timeout=10) as answer:
            return answer.read().decode()

    def serves(self):
        return self.node("/opt/sluice/bin/sluice", "status", "--json", "--runtime-dir", "/run/sluice-node/0", check=False).returncode == 0

    def until_offered(self, granules):
        until(f"the node offers {granules} granules", lambda: self._cluster.kubectl.allocatable(RESOURCE) == granules)

    def logs(self, component):
        return self._cluster.kubectl.run("logs", "--namespace", NAMESPACE, "--all-containers", "--tail=-1", "--selector",
                                         f"app.kubernetes.io/component={component}", check=False).stdout

    def node(self, *command, check=True):
        """Runs a program in the node's container."""
        pods = self._cluster.kubectl.get("pods", "--namespace", NAMESPACE, "--selector",
                                         "app.kubernetes.io/component=node")["items"]
        return self._cluster.kubectl.run("exec", "--namespace", NAMESPACE, pods[0]["metadata"]["name"], "--", *command,
                                         check=check)

    def _until_ready(self):
        """Helm waits for all pods of a DaemonSet but those that its strategy lets be missing: of one node's for none."""
        self._cluster.kubectl.run("rollout", "status", "--namespace", NAMESPACE, "daemonset/sluice-device-plugin",
                                  "--timeout=120s", seconds=130)

    def _values_file(self):
        path = pathlib.Path(self._cluster.work) / "values.yaml"
        path.write_text(yaml.safe_dump(self.values))
        return str(path)

    def _helm(self, *arguments):
        done = subprocess.run([self._cluster.programs / "helm", "--kubeconfig", self._cluster.kubectl.kubeconfig, *arguments],
                              capture_output=True, text=True, check=False, env={"HOME": str(self._cluster.work)})
        if done.returncode != 0:
            pods = self._cluster.kubectl.run("describe", "pods", "--namespace", NAMESPACE, check=False).stdout
            raise AssertionError(f"helm {arguments[0]}: {done.stderr}\n{pods[-6000:]}\n"
                                 f"{self.logs('node')}\n{self.logs('device-plugin')}")
