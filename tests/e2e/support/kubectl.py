# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The cluster as its user sees it: kubectl, with answers as values."""

import contextlib
import copy
import json
import pathlib
import signal
import subprocess
import tempfile

import yaml

from support.processes import until


class Kubectl:
    def __init__(self, program, kubeconfig, home):
        self.kubeconfig = str(kubeconfig)
        self._command = [str(program), "--kubeconfig", self.kubeconfig]
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}

    def with_plugins(self, folder):
        """The same with programs of this folder as plugins, which find kubectl and the cluster as a user's do."""
        other = copy.copy(self)
        program = pathlib.Path(self._command[0])
        other._command = [self._command[0]]
        other._environment = {**self._environment, "KUBECONFIG": self.kubeconfig,
                              "PATH": f"{folder}:{program.parent}:{self._environment['PATH']}"}
        return other

    def run(self, *arguments, check=True, text=None, seconds=120):
        done = subprocess.run([*self._command, *arguments], input=text, capture_output=True, text=True,
                              timeout=seconds, env=self._environment)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done

    @contextlib.contextmanager
    def forward(self, *arguments):
        """`kubectl port-forward` with these arguments, for as long as the block takes; gives what it says when it is there."""
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen(
                [*self._command, *arguments], stdout=said, stderr=subprocess.STDOUT, env=self._environment) as running:
            def text():
                said.seek(0)
                return said.read()
            try:
                yield until("the port is forwarded", lambda: text() if "Forwarding from" in text() else None)
            finally:
                running.terminate()

    def apply(self, *objects):
        self.run("apply", "-f", "-", text="\n---\n".join(yaml.safe_dump(each) for each in objects))

    def get(self, *arguments):
        """The object or list as JSON; None: there is none."""
        done = self.run("get", *arguments, "-o", "json", check=False)
        if done.returncode != 0:
            if "NotFound" in done.stderr:
                return None
            raise AssertionError(f"kubectl get {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def delete(self, *arguments):
        self.run("delete", *arguments, "--ignore-not-found", "--grace-period=1", "--timeout=60s")

    def logs(self, *arguments, check=True):
        return self.run("logs", *arguments, check=check).stdout

    def let_go(self, pod, *arguments):
        """Has a container go on that waits for /tmp/go. It may be over before what told it has an exit status of its own, and
        takes that with it."""
        done = self.run("exec", pod, *arguments, "--", "touch", "/tmp/go", check=False)
        assert done.returncode in (0, 128 + signal.SIGKILL), f"{pod} was not told to go on: {done.stderr.strip()}"

    def annotate(self, pod, **annotations):
        pairs = [f"{name}={value}" for name, value in annotations.items()]
        self.run("annotate", "--overwrite", "pod", pod, *pairs)

    def pod(self, name):
        return self.get("pod", name)

    def until_phase(self, name, *phases, seconds=120):
        def look():
            pod = self.pod(name)
            return pod if pod and pod["status"].get("phase") in phases else None
        try:
            return until(f"pod {name} is {' or '.join(phases)}", look, seconds)
        except AssertionError as failed:
            described = self.run("describe", "pod", name, check=False).stdout
            logs = self.run("logs", name, "--all-containers", check=False).stdout
            raise AssertionError(f"{failed}\n{described}\n{logs[-4000:]}") from None

    def until_complete(self, job, seconds=120):
        """Its pods: the one that succeeded, those that did not."""
        def done():
            conditions = self.get("job", job)["status"].get("conditions", [])
            return {each["type"] for each in conditions if each["status"] == "True"} & {"Complete", "Failed"}
        try:
            ended = until(f"job {job} is over", done, seconds)
        except AssertionError as failed:
            described = self.run("describe", "pods", "--selector", f"job-name={job}", check=False).stdout
            raise AssertionError(f"{failed}\n{described}") from None
        assert ended == {"Complete"}, self.run("describe", "job", job).stdout
        pods = self.get("pods", "--selector", f"job-name={job}")["items"]
        succeeded = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
        assert len(succeeded) == 1
        return succeeded[0], [pod for pod in pods if pod["status"]["phase"] != "Succeeded"]

    def events_of(self, name):
        """(reason, message) of each event of a pod, oldest first."""
        events = self.get("events", "--field-selector", f"involvedObject.name={name}", "--sort-by=.metadata.creationTimestamp")
        return [(event["reason"], event["message"]) for event in events["items"]]

    def node(self):
        return self.get("nodes")["items"][0]

    def allocatable(self, resource):
        return int(self.node()["status"]["allocatable"].get(resource, "0").replace("k", "000"))
