"""The chart of deploy/helm in a cluster: installed, changed, asked, removed."""

import json
import os
import time

from node import DEPS, ROOT, wait_until
from rolling import Refusal

CHART = ROOT / "deploy/helm/longview"
# A drain short enough for a test and long enough for clients to see it; time to finish on a busy machine.
VALUES = {"server": {"drainSeconds": 5, "shutdownSeconds": 300},
          "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}}


def merged(first, second):
    """Nested dictionaries; the second wins."""
    both = dict(first)
    for key, value in second.items():
        old = both.get(key)
        both[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return both


class Release:
    """A release named `longview` in a namespace that enforces the restricted Pod Security Standard."""

    def __init__(self, node, namespace):
        self.node, self.namespace = node, namespace
        node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})

    def helm(self, *arguments, check=True, timeout=900, **options):
        return self.node.run(DEPS / "bin/helm", "-n", self.namespace, *arguments, check=check,
                             timeout=timeout, **options)

    def kubectl(self, *arguments, **options):
        return self.node.kubectl("-n", self.namespace, *arguments, **options)

    def get(self, *what):
        return self.node.get("-n", self.namespace, *what)

    def apply(self, *objects):
        return self.node.apply(*objects, namespace=self.namespace)

    def install(self, values=None, wait=True, check=True, timeout="600s"):
        """Installs or upgrades with --wait; returns the seconds it took."""
        begun = time.monotonic()
        text = json.dumps(merged(VALUES, values or {}))
        waiting = ["--wait", f"--timeout={timeout}"] if wait else []
        self.helm("upgrade", "--install", "longview", CHART, *waiting, "--values", "-", input=text,
                  check=check)
        return time.monotonic() - begun

    def pods(self):
        """The server's pods that are not being deleted."""
        found = self.get("pods", "-l", "app.kubernetes.io/name=longview")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready_pods(self):
        return [pod for pod in self.pods() if is_ready(pod)]

    def wait_ready(self, count, seconds=300):
        """Waits until exactly `count` pods are there, all of them ready."""
        wait_until(lambda: len(self.pods()) == count == len(self.ready_pods()), seconds,
                   f"{count} ready pods", pause=2)

    def restarts(self):
        return sum(status["restartCount"] for pod in self.pods()
                   for status in pod["status"].get("containerStatuses", []))

    def replicas(self):
        return self.get("deployment", "longview")["spec"]["replicas"]

    def curl(self, path, *arguments, service="longview", port=8080, scheme="http", **options):
        """The answer of a request to the Service from a place in the cluster's network."""
        host = f"{service}.{self.namespace}.svc.cluster.local"
        return self.node.within("curl", "-sS", "--max-time", "60", *arguments,
                                f"{scheme}://{host}:{port}{path}", **options)

    def status(self, pod, path, port=8080):
        """The status of a GET to a pod itself; 0 if nobody answers there."""
        address = f"http://{pod['status']['podIP']}:{port}{path}"
        said = self.node.run("curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--max-time", "30",
                             address, check=False)
        return int(said)

    def post(self, path, body, pod=None, headers=()):
        """The text of an answer to a pod itself, or to the Service; Refusal if it is not 200."""
        host = pod["status"]["podIP"] if pod else f"longview.{self.namespace}.svc.cluster.local"
        said = self.node.within(
            "curl", "-sS", "--max-time", "1200", "-w", "\n%{http_code} %header{retry-after}",
            "--data-binary", "@-", *(f"-H{header}" for header in headers), f"http://{host}:8080{path}",
            input=json.dumps(body), timeout=1300)
        text, _, line = said.rpartition("\n")
        status, _, retry_after = line.partition(" ")
        if status != "200":
            raise Refusal(int(status), text, retry_after)
        return text

    def ask(self, *request, tries=100):
        """As post, repeated where the refusal says when; returns the text and the refusals."""
        refusals = []
        while True:
            try:
                return self.post(*request), refusals
            except Refusal as refusal:
                refusals.append(refusal)
                if not refusal.retry_after or len(refusals) == tries:
                    raise
                time.sleep(refusal.retry_after)

    def poster(self, pod=None):
        """post(path, body) as rolling.poster makes it."""
        return lambda path, body: self.post(path, body, pod)

    def volume(self, folder):
        """A PersistentVolume on a folder of the node, and the claim `models` for it."""
        about = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
        self.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume",
             "metadata": {"name": self.namespace, "labels": {"namespace": self.namespace}},
             "spec": about | {"capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)},
                              "persistentVolumeReclaimPolicy": "Retain"}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"},
             "spec": about | {"volumeName": self.namespace,
                              "resources": {"requests": {"storage": "1Gi"}}}})

    def story(self):
        """What Kubernetes and the servers say, for the report of a failed test."""
        return "\n".join([
            self.kubectl("get", "pods,deployments,hpa,events", "-o", "wide", check=False)[-6000:],
            self.kubectl("logs", "-l", "app.kubernetes.io/name=longview", "--tail=20", "--prefix",
                         check=False)[-6000:]])

    def remove(self):
        self.helm("uninstall", "longview", "--ignore-not-found", check=False)
        self.kubectl("delete", "namespace", self.namespace, "--timeout=180s", check=False)
        self.kubectl("delete", "pv", "-l", f"namespace={self.namespace}", check=False)


def ready_condition(pod):
    """The pod's condition Ready; an empty one before the kubelet has seen it."""
    return next((condition for condition in pod["status"].get("conditions", [])
                 if condition["type"] == "Ready"), {"status": "Unknown"})


def is_ready(pod):
    return ready_condition(pod)["status"] == "True"
