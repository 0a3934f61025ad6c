# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Certificates and kubeconfigs of a cluster that lives for minutes."""

import json
import pathlib
import subprocess

_NAMES = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]


class Keys:
    def __init__(self, folder, node, url, addresses):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, mode=0o700)
        self._key("ca")
        self._openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=sluice-e2e", "-days", "2", "-out", "ca.crt")
        server = [f"DNS:{name}" for name in _NAMES] + [f"IP:{address}" for address in addresses]
        self._certificate("apiserver", "/CN=kube-apiserver", server)
        self._certificate("apiserver-kubelet", "/O=system:masters/CN=apiserver-kubelet")
        self._certificate("kubelet", f"/O=system:nodes/CN=system:node:{node}", [f"DNS:{node}"] + server)
        self._certificate("scheduler", "/CN=system:kube-scheduler")
        self._certificate("controllers", "/CN=system:kube-controller-manager")
        self._certificate("admin", "/O=system:masters/CN=admin")
        self._openssl("genrsa", "-out", "accounts.key", "2048")
        self._openssl("rsa", "-in", "accounts.key", "-pubout", "-out", "accounts.pub")
        for user in ("kubelet", "scheduler", "controllers", "admin"):
            self._kubeconfig(user, url)

    def __getitem__(self, name):
        return str(self.folder / name)

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def _key(self, name):
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def _certificate(self, name, subject, alternatives=()):
        self._key(name)
        extensions = ["extendedKeyUsage=serverAuth,clientAuth"]
        if alternatives:
            extensions.append("subjectAltName=" + ",".join(alternatives))
        (self.folder / f"{name}.ext").write_text("\n".join(extensions))
        self._openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                      "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")

    def _kubeconfig(self, user, url):
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": {"server": url, "certificate-authority": self["ca.crt"]}}],
            "users": [{"name": user, "user": {"client-certificate": self[f"{user}.crt"],
                                              "client-key": self[f"{user}.key"]}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}]}
        (self.folder / f"{user}.kubeconfig").write_text(json.dumps(config))
