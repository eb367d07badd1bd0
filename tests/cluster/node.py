"""A Kubernetes cluster of one node in namespaces of its own, and nothing of it after its end.

One process, the holder, is process 1 of new network, mount and process namespaces without a route
out. Everything runs inside: etcd, the control plane, containerd, the kubelet, kube-proxy, the pods.
The holder reads a pipe of the process that started it, so that it ends with that process, however
it ends; and with the holder the kernel ends its processes, its mounts and its firewall rules.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import identity

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEPS = pathlib.Path(os.environ.get("DEPS_DIR", ROOT / ".deps"))
PARTS = DEPS / "cluster"
NODE, POD_NET, SERVICE_NET = "10.240.0.1", "10.244.0.0/16", "10.96.0.0/16"
FIRST_SERVICE, NAME_SERVICE = "10.96.0.1", "10.96.0.10"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
            "kubectl")
# The kubelet would set these for the whole machine; it gets files in their place.
_SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
             "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")
_CGROUPS = pathlib.Path("/sys/fs/cgroup")


def why_not():
    """The reason why no cluster can run here; empty if one can."""
    if os.geteuid() != 0:
        return "a cluster needs root, for namespaces and mounts"
    missing = [name for name in PROGRAMS if not (PARTS / "bin" / name).exists()]
    if missing:
        return f"{', '.join(missing)} not built: tests/support/install_cluster.sh needs Go"
    if any((path / "cgroup.procs").read_text() for path in pod_cgroups()):
        return "pods of another kubelet run on this machine"
    return ""


def pod_cgroups():
    """Control groups of pods on this machine, inner ones first."""
    return sorted((path for pattern in ("kubepods*", "*/kubepods*", "kubepods*/**/",
                                        "*/kubepods*/**/")
                   for path in _CGROUPS.glob(pattern) if path.is_dir()),
                  key=lambda path: -len(path.parts))


def wait_until(condition, seconds, what, pause=0.5):
    """Returns the first true value of `condition`; AssertionError after `seconds` without one."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds} s: {what}"
        time.sleep(pause)
    return value


class Node:
    """The cluster; `with Node() as node` brings it up and down. One per machine."""

    def __init__(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="lv-node-"))
        self.keys, self.logs = self.state / "keys", self.state / "log"
        self.holder, self._pipe, self._shell, self._daemons = None, None, None, []

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self._keep_logs()
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self._keep_logs()
        self.stop()

    # ---------- commands

    def inside(self, *command, mounts=True):
        """The command line that runs `command` in the cluster's namespaces."""
        kinds = ["-m", "-n", "-p"] if mounts else ["-n"]
        return ["nsenter", "-t", str(self.holder), *kinds, "--", *map(str, command)]

    def run(self, *command, check=True, timeout=300, **options):
        """Runs a command in the cluster's network and returns what it printed."""
        return self._run(self.inside(*command, mounts=False), check, timeout, **options)

    def within(self, *command, check=True, timeout=300, **options):
        """As run, and with the cluster's name server."""
        return self._run(self.inside(*command), check, timeout, **options)

    def kubectl(self, *arguments, **options):
        return self.run(PARTS / "bin/kubectl", *arguments, **options)

    def _run(self, command, check, timeout, **options):
        done = subprocess.run(command, text=True, timeout=timeout, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              env={**os.environ, **self.environment()}, **options)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def get(self, *what):
        """The objects as JSON, as `kubectl get` names them."""
        return json.loads(self.kubectl("get", *what, "-o", "json"))

    def apply(self, *objects, namespace="default"):
        """Applies objects (dictionaries) or a text of manifests."""
        texts = [thing if isinstance(thing, str) else json.dumps(thing) for thing in objects]
        return self.kubectl("-n", namespace, "apply", "-f", "-", input="\n---\n".join(texts))

    def environment(self):
        return {"KUBECONFIG": str(self.keys / "admin.conf"),
                "PATH": f"{PARTS / 'bin'}:{DEPS / 'bin'}:{os.environ['PATH']}"}

    def load(self, archive):
        """Imports an OCI archive into the node's containerd, under the names it carries."""
        return self._ctr("images", "import", archive)

    def tag(self, image, other):
        return self._ctr("images", "tag", "--force", image, other)

    def _ctr(self, *arguments):
        command = self.inside(PARTS / "root/usr/bin/ctr", "-a", self.state / "containerd.sock",
                              "-n", "k8s.io", *arguments)
        done = subprocess.run(command, text=True, capture_output=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    # ---------- up

    def _start(self):
        for folder in ("log", "cni", "etcd"):
            (self.state / folder).mkdir()
        (self.state / "resolv.conf").write_text(
            f"nameserver {NAME_SERVICE}\nsearch default.svc.cluster.local svc.cluster.local "
            "cluster.local\noptions ndots:5 timeout:10 attempts:5\n")
        identity.make(self.keys, NODE, FIRST_SERVICE)
        self._hold()
        self._control_plane()
        self._node()
        self._services()

    def _hold(self):
        """Starts the holder, and the network that it holds: one interface, routes that lead nowhere."""
        self._shell = subprocess.Popen(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
             "--propagation", "private", "bash", "-c", "echo up; read -r _"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self._shell.stdout.readline() == "up\n"
        children = pathlib.Path(f"/proc/{self._shell.pid}/task/{self._shell.pid}/children")
        self.holder = int(children.read_text().split()[0])
        script = f"""set -e
mount --make-rshared /
for name in {" ".join(_SETTINGS)}; do
  mkdir -p "$(dirname "{self.state}/settings/$name")"
  cat "/proc/sys/$name" >"{self.state}/settings/$name"
  mount --bind "{self.state}/settings/$name" "/proc/sys/$name"
done
mount -t tmpfs tmpfs /run
names=$(readlink -m /etc/resolv.conf)
case $names in /run/*) mkdir -p "$(dirname "$names")"; touch "$names" ;; esac
mount --bind {self.state}/resolv.conf "$names"
ip link set lo up
ip link add node0 type veth peer name node0p
ip link set node0p up
ip link set node0 up
ip addr add {NODE}/24 dev node0
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward
"""
        subprocess.run(self.inside("bash", "-c", script), check=True)

    def _daemon(self, name, *command, libraries=False):
        """Starts a component inside the namespaces; its log is kept."""
        path = f"{PARTS / 'bin'}:{PARTS / 'root/usr/bin'}:{PARTS / 'root/usr/sbin'}"
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        if libraries:
            environment["LD_LIBRARY_PATH"] = ":".join(
                str(PARTS / "root" / folder / "x86_64-linux-gnu") for folder in ("usr/lib", "lib"))
        with open(self.logs / f"{name}.log", "a", encoding="utf-8") as log:
            self._daemons.append(subprocess.Popen(
                self.inside(*command), env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log))

    def _control_plane(self):
        keys = self.keys
        self._daemon("etcd", "etcd", "--data-dir", self.state / "etcd", "--unsafe-no-fsync",
                     "--listen-client-urls=http://127.0.0.1:2379",
                     "--advertise-client-urls=http://127.0.0.1:2379",
                     "--listen-peer-urls=http://127.0.0.1:2380", "--log-level=warn")
        self._daemon(
            "apiserver", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
            "--secure-port=6443", f"--advertise-address={NODE}",
            f"--service-cluster-ip-range={SERVICE_NET}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            f"--client-ca-file={keys}/ca.crt", f"--tls-cert-file={keys}/apiserver.crt",
            f"--tls-private-key-file={keys}/apiserver.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys}/sa.pub",
            f"--service-account-signing-key-file={keys}/sa.key",
            f"--kubelet-client-certificate={keys}/kubelet-client.crt",
            f"--kubelet-client-key={keys}/kubelet-client.key",
            f"--kubelet-certificate-authority={keys}/ca.crt",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={keys}/ca.crt",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={keys}/front-proxy.crt",
            f"--proxy-client-key-file={keys}/front-proxy.key", "--profiling=false",
            # For the policy of small_requests.yaml, and so that image volumes are accepted.
            "--feature-gates=MutatingAdmissionPolicy=true,ImageVolume=true",
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true")
        wait_until(lambda: self.kubectl("get", "--raw", "/readyz", check=False).strip() == "ok",
                   180, "the API server is ready", pause=1)
        for name, more in (("controller-manager", [
                f"--service-account-private-key-file={keys}/sa.key",
                f"--root-ca-file={keys}/ca.crt", "--use-service-account-credentials",
                "--allocate-node-cidrs=true", f"--cluster-cidr={POD_NET}",
                f"--cluster-signing-cert-file={keys}/ca.crt",
                f"--cluster-signing-key-file={keys}/ca.key",
                # Three times as fast as usual, and waits for no stale sample.
                "--horizontal-pod-autoscaler-sync-period=5s"]), ("scheduler", [])):
            config = keys / f"{name}.conf"
            self._daemon(name, f"kube-{name}", f"--kubeconfig={config}", "--leader-elect=false",
                         f"--authentication-kubeconfig={config}",
                         f"--authorization-kubeconfig={config}", *more)

    def _node(self):
        for name in ("10-bridge.conflist", "containerd.toml", "kubelet.yaml"):
            text = (HERE / "config" / name).read_text()
            for key, value in (("@STATE@", self.state), ("@PARTS@", PARTS), ("@KEYS@", self.keys),
                               ("@NODE@", NODE), ("@NAME_SERVICE@", NAME_SERVICE)):
                text = text.replace(key, str(value))
            folder = self.state / "cni" if name.endswith("conflist") else self.state
            (folder / name).write_text(text)
        self._daemon("containerd", "containerd", "-c", self.state / "containerd.toml",
                     libraries=True)
        wait_until((self.state / "containerd.sock").is_socket, 60, "containerd listens")
        self._pause_image()
        keys = self.keys
        self._daemon("kubelet", "kubelet", f"--config={self.state}/kubelet.yaml",
                     f"--kubeconfig={keys}/node.conf", f"--root-dir={self.state}/kubelet",
                     f"--cert-dir={keys}", "--hostname-override=node1", f"--node-ip={NODE}",
                     libraries=True)
        self._daemon("proxy", "kube-proxy", f"--kubeconfig={keys}/proxy.conf",
                     "--hostname-override=node1", "--proxy-mode=nftables",
                     f"--cluster-cidr={POD_NET}", "--conntrack-max-per-core=0",
                     "--conntrack-min=0", "--profiling=false", libraries=True)

    def _pause_image(self):
        import image
        folder = self.state / "pause"
        folder.mkdir()
        shutil.copy(PARTS / "bin/pause", folder / "pause")
        archive = self.state / "pause.tar"
        image.write(archive, "localhost/pause:1", folder, {"Entrypoint": ["/pause"]})
        wait_until(lambda: subprocess.run(
            self.inside(PARTS / "root/usr/bin/ctr", "-a", self.state / "containerd.sock", "version"),
            capture_output=True).returncode == 0, 60, "containerd answers")
        self.load(archive)
        archive.unlink()

    def _services(self):
        """What every cluster has besides: names, custom metrics; and room for its requests of CPU."""
        for name in ("name_server", "custom_metrics"):
            self._daemon(name, sys.executable, HERE / f"{name}.py", self.keys, NODE)
        for name in ("name_server", "custom_metrics", "small_requests"):
            self.kubectl("apply", "-f", HERE / f"config/{name}.yaml")
        wait_until(lambda: "node1" in self.kubectl("get", "nodes", "-o", "name", check=False), 120,
                   "the node has registered")
        self.kubectl("wait", "--for=condition=Ready", "node/node1", "--timeout=180s")
        # All pods together would weigh as much as two processes of the machine, and starve beside a build.
        for name, weight in (("cpu/kubepods/cpu.shares", "8192"), ("kubepods/cpu.weight", "800")):
            if (_CGROUPS / name).exists():
                (_CGROUPS / name).write_text(weight)

    # ---------- down

    def stop(self):
        """Ends everything; leaves the machine as it was. Safe to call twice, and not to be interrupted
        in the main thread."""
        handlers = {}
        if threading.current_thread() is threading.main_thread():
            handlers = {kind: signal.signal(kind, signal.SIG_IGN)
                        for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._stop()
        finally:
            for kind, handler in handlers.items():
                signal.signal(kind, handler)

    def _stop(self):
        if self._shell:
            self._shell.kill()  # The kernel kills the holder with it, and all processes with that.
            self._shell.wait()
            self._shell.stdin.close()
            self._shell.stdout.close()
            for daemon in self._daemons:
                daemon.wait(60)
            wait_until(lambda: not pathlib.Path(f"/proc/{self.holder}").exists(), 60,
                       "the namespaces are gone")
            self._shell = None
            self._remove_cgroups()
        shutil.rmtree(self.state, ignore_errors=True)

    def _remove_cgroups(self):
        def removed():
            for path in pod_cgroups():
                try:
                    path.rmdir()
                except OSError:
                    pass
            return not pod_cgroups()
        wait_until(removed, 60, "the pods' control groups are gone")

    def _keep_logs(self):
        """Copies the components' logs to LONGVIEW_CLUSTER_LOGS, if that is set."""
        target = os.environ.get("LONGVIEW_CLUSTER_LOGS")
        if target:
            shutil.copytree(self.logs, target, dirs_exist_ok=True)
