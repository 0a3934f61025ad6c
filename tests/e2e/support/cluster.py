# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""A real Kubernetes of one node: etcd, API server, scheduler, controllers, containerd and kubelet.

It runs in namespaces that tests/e2e/run made (PIDs, mounts, network), so whatever it starts, mounts or
configures is gone with them. What is the machine's own and not a namespace's, sysctls and cgroups, run puts back.
"""

import json
import pathlib
import shutil
import signal
import subprocess

import yaml

from support.keys import Keys
from support.kubectl import Kubectl
from support.processes import Processes, until

NODE = "node"
_NODE_ADDRESS = "10.244.0.1"
# The service of the API server. There is no kube-proxy: the address is on the bridge, the port the server's own.
_SERVICE_ADDRESS = "10.96.0.1"
_PORT = 443
_CNI_PROGRAMS = "/usr/lib/cni"
# Set, so that it stays: else a bridge takes the lowest of its ports', which changes when pods come and go, and the
# others send to the old one until they ask again.
_BRIDGE = "02:00:00:00:e2:e0"


class Cluster:
    def __init__(self, programs, work):
        self.programs = pathlib.Path(programs)
        self.work = pathlib.Path(work)
        self.keys = Keys(self.work / "keys", NODE, f"https://127.0.0.1:{_PORT}", ["127.0.0.1", _NODE_ADDRESS, _SERVICE_ADDRESS])
        self.kubectl = Kubectl(self.programs / "kubectl", self.keys["admin.kubeconfig"], self.work)
        self.processes = Processes(self.work / "logs", f"{self.programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        self._containerd = self.work / "containerd.sock"

    # --- up and down

    def up(self, images):
        self._network()
        self._etcd()
        self._api_server()
        self._start_containerd()
        for image in images:
            self.load_image(image)
        until("the API server is ready", lambda: self.kubectl.run("get", "--raw", "/readyz", check=False).returncode == 0)
        self._scheduler()
        self._controllers()
        self._write_kubelet_config()
        self.start_kubelet()
        until("the node is ready", self.node_is_ready)
        # Made by the controllers; no pod is admitted without it.
        until("there is a service account", lambda: self.kubectl.get("serviceaccount", "default"))

    def down(self):
        self.kubectl.run("delete", "daemonset,deployment,job,pod", "--all", "--all-namespaces", "--grace-period=1",
                         "--timeout=40s", check=False)
        self.processes.stop_all()

    def load_image(self, archive):
        subprocess.run(["ctr", "-a", self._containerd, "-n", "k8s.io", "images", "import", archive],
                       check=True, capture_output=True)

    def name_image_again(self, name, other):
        subprocess.run(["ctr", "-a", self._containerd, "-n", "k8s.io", "images", "tag", name, other], check=True, capture_output=True)

    # --- kubelet, which tests restart

    def start_kubelet(self):
        self.processes.start(
            "kubelet", self.programs / "kubelet", f"--config={self.work}/kubelet.yaml",
            f"--kubeconfig={self.keys['kubelet.kubeconfig']}", f"--hostname-override={NODE}",
            f"--node-ip={_NODE_ADDRESS}", "--v=2")

    def stop_kubelet(self, number):
        self.processes.stop("kubelet", number)

    # --- and the API server

    def start_api_server(self):
        self._api_server()
        until("the API server answers again", lambda: self.kubectl.run("get", "nodes", check=False).returncode == 0)

    def stop_api_server(self):
        self.processes.stop("kube-apiserver", signal.SIGKILL)

    def node_is_ready(self):
        nodes = self.kubectl.get("nodes")["items"]
        return nodes and any(condition["type"] == "Ready" and condition["status"] == "True"
                             for condition in nodes[0]["status"]["conditions"])

    # --- parts

    def _network(self):
        # Made here and not by the first pod's network: the node has its address on it.
        for command in ("link set lo up", f"link add e2e0 address {_BRIDGE} type bridge", "link set e2e0 up",
                        f"addr add {_NODE_ADDRESS}/24 dev e2e0", f"addr add {_SERVICE_ADDRESS}/32 dev e2e0"):
            subprocess.run(["ip", *command.split()], check=True)

    def _etcd(self):
        self.processes.start(
            "etcd", shutil.which("etcd"), f"--data-dir={self.work}/etcd", "--unsafe-no-fsync",
            "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380")

    def _api_server(self):
        keys = self.keys
        issuer = "https://kubernetes.default.svc.cluster.local"
        self.processes.start(
            "kube-apiserver", self.programs / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
            f"--secure-port={_PORT}", "--bind-address=0.0.0.0", f"--advertise-address={_NODE_ADDRESS}",
            f"--tls-cert-file={keys['apiserver.crt']}", f"--tls-private-key-file={keys['apiserver.key']}",
            f"--client-ca-file={keys['ca.crt']}", f"--service-account-key-file={keys['accounts.pub']}",
            f"--service-account-signing-key-file={keys['accounts.key']}", f"--service-account-issuer={issuer}",
            f"--api-audiences={issuer}", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            f"--kubelet-client-certificate={keys['apiserver-kubelet.crt']}",
            f"--kubelet-client-key={keys['apiserver-kubelet.key']}",
            f"--kubelet-certificate-authority={keys['ca.crt']}", "--kubelet-preferred-address-types=InternalIP",
            # The controllers insist on an aggregation layer.
            f"--requestheader-client-ca-file={keys['ca.crt']}", "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-")

    def _scheduler(self):
        config = self.keys["scheduler.kubeconfig"]
        self.processes.start(
            "kube-scheduler", self.programs / "kube-scheduler", f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}", "--leader-elect=false",
            "--bind-address=127.0.0.1")

    def _controllers(self):
        config = self.keys["controllers.kubeconfig"]
        self.processes.start(
            "kube-controller-manager", self.programs / "kube-controller-manager", f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}", "--leader-elect=false",
            "--bind-address=127.0.0.1", "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.keys['accounts.key']}", f"--root-ca-file={self.keys['ca.crt']}",
            f"--flex-volume-plugin-dir={self.work}/volumes")

    def _start_containerd(self):
        networks = self.work / "networks"
        networks.mkdir()
        (networks / "10-e2e.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "e2e", "plugins": [{
                "type": "bridge", "bridge": "e2e0", "isGateway": True, "ipMasq": False, "hairpinMode": True,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]],
                         "routes": [{"dst": "0.0.0.0/0"}], "dataDir": f"{self.work}/addresses"}}]}))
        (self.work / "containerd.toml").write_text(f"""
version = 2
root = "{self.work}/containerd"
state = "{self.work}/containerd-state"
[grpc]
  address = "{self._containerd}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.6"
  # Where the kernel lets nobody lower it, every sandbox would fail.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{_CNI_PROGRAMS}"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
""")
        self.processes.start("containerd", shutil.which("containerd"), "-c", self.work / "containerd.toml")
        until("containerd answers", lambda: subprocess.run(
            ["ctr", "-a", self._containerd, "version"], capture_output=True, check=False).returncode == 0)

    def _write_kubelet_config(self):
        keys = self.keys
        (self.work / "volumes").mkdir()
        (self.work / "kubelet.yaml").write_text(yaml.safe_dump({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "0.0.0.0",
            "containerRuntimeEndpoint": f"unix://{self._containerd}", "cgroupDriver": "cgroupfs", "failCgroupV1": False,
            "failSwapOn": False, "makeIPTablesUtilChains": False, "oomScoreAdj": 0, "nodeStatusUpdateFrequency": "5s",
            # Images are brought, not fetched: none may be collected.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%",
                             "nodefs.inodesFree": "1%"},
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": keys["ca.crt"]}},
            "authorization": {"mode": "Webhook"}, "tlsCertFile": keys["kubelet.crt"],
            "tlsPrivateKeyFile": keys["kubelet.key"], "clusterDNS": [], "resolvConf": "",
            "volumePluginDir": f"{self.work}/volumes"}))
