"""TLS, keys and clients' certificates: Secrets made late, and replaced under running servers."""

import base64
import json
import os
import shutil

from certificates import Authority, install
from chart import Release
from node import ROOT, wait_until
from traffic import Traffic

MANIFESTS = ROOT / "deploy/kubernetes"


def secret_files(folder, authority):
    """tls.crt and tls.key of a new certificate, as samples/secrets.sh takes them."""
    folder.mkdir(exist_ok=True)
    certificate, key = authority.issue("server")
    shutil.copy(certificate, folder / "tls.crt")
    shutil.copy(key, folder / "tls.key")


def patch(release, name, files):
    """Puts files (bytes) into a Secret."""
    release.kubectl("patch", "secret", name, "-p", json.dumps({"data": {
        key: base64.b64encode(value).decode() for key, value in files.items()}}))


def answer(node, authority, key):
    """The status of a request by HTTPS through the Service; "000" where TLS fails."""
    address = node.get("-n", "longview", "service", "longview")["spec"]["clusterIP"]
    return node.run("curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--max-time", "20",
                    "--cacert", authority.ca, "--resolve", f"localhost:8080:{address}",
                    "-H", f"Authorization: Bearer {key}", "https://localhost:8080/v1/models",
                    check=False)


def test_the_secured_overlay_and_its_secrets(node, tmp_path):
    """Pods wait for the Secrets and come up once samples/secrets.sh has made them; a certificate of
    another authority and another key hold without a restart, and the old key no more."""
    node.kubectl("apply", "-k", MANIFESTS / "namespace")
    release = Release(node, "longview")
    try:
        node.kubectl("apply", "-k", MANIFESTS / "overlays/secured")
        release.kubectl("scale", "deployment/longview", "--replicas=2")
        wait_until(lambda: "FailedMount" in release.kubectl("get", "events"), 120,
                   "pods wait for their Secrets")
        authority = Authority(tmp_path)
        secret_files(tmp_path / "first", authority)
        node.run("bash", MANIFESTS / "samples/secrets.sh", cwd=tmp_path / "first")
        release.wait_ready(2, 600)
        data = release.get("secret", "longview-keys")["data"]["keys"]
        old = base64.b64decode(data).decode().strip().partition(":")[2]
        assert answer(node, authority, old) == "200"
        assert answer(node, authority, "another") == "401"

        other = Authority(tmp_path, "other")
        secret_files(tmp_path / "second", other)
        patch(release, "longview-tls", {name: (tmp_path / "second" / name).read_bytes()
                                        for name in ("tls.crt", "tls.key")})
        patch(release, "longview-keys", {"keys": b"team-a:the-second-key-of-team-a\n"})
        wait_until(lambda: answer(node, other, "the-second-key-of-team-a") == "200" and
                   answer(node, other, old) == "401" and answer(node, authority, old) == "000",
                   300, "the new certificate and the new key hold", pause=3)
        assert release.restarts() == 0

        # What `delete -k` leaves: the namespace and the Secrets.
        node.kubectl("delete", "-k", MANIFESTS / "overlays/secured", "--timeout=200s")
        assert release.get("secret", "longview-keys")
    finally:
        node.kubectl("delete", "namespace", "longview", "--timeout=200s", check=False)


class Clients:
    """A folder of what TLS clients use, which load.py reads anew for every call."""

    def __init__(self, release, folder):
        self.release, self.folder = release, folder
        folder.mkdir()

    def trust(self, *authorities):
        install(b"".join(authority.ca.read_bytes() for authority in authorities), self.folder / "ca.pem")

    def show(self, identity):
        install(identity, self.folder / "client.pem")

    def answer(self, authority, identity):
        """The status of a request by a client of this identity, "000" where TLS refuses it."""
        host = f"longview.{self.release.namespace}.svc.cluster.local"
        shown = ["--cert", identity] if identity else []
        return self.release.node.within(
            "curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--max-time", "20", "--cacert",
            authority.ca, *shown, f"https://{host}:8080/v1/models", check=False)


def identity_of(authority):
    """A file of a client's certificate and its key."""
    certificate, key = authority.issue("client")
    path = certificate.with_name("identity.pem")
    path.write_bytes(certificate.read_bytes() + key.read_bytes())
    return path


def test_clients_show_certificates(release, journal, tmp_path):
    """tls.mutual: no certificate, no answer. The authority of both sides is replaced under calls in the
    steps that lose none: trust both, show the new one, trust the new one alone."""
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    hosts = [f"{name}.{release.namespace}.svc.cluster.local" for name in ("longview", "longview-pods")]
    server = {authority: authority.issue("server", *hosts) for authority in (old, new)}

    def files(shown, *trusted):
        certificate, key = server[shown]
        return {"tls.crt": certificate.read_bytes(), "tls.key": key.read_bytes(),
                "ca.crt": b"".join(authority.ca.read_bytes() for authority in trusted)}

    release.apply({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                   "metadata": {"name": "server-tls"}, "data": {
                       name: base64.b64encode(data).decode() for name, data in files(old, old).items()}})
    release.install({"tls": {"secretName": "server-tls", "mutual": True}})
    clients = Clients(release, tmp_path / "clients")
    clients.trust(old)
    of_old, of_new = identity_of(old), identity_of(new)
    clients.show(of_old)
    assert clients.answer(old, of_old) == "200"
    assert clients.answer(old, None) == "000"
    assert clients.answer(old, of_new) == "000"
    rates = ("grpc=1", "grpc-stream=4", "rest=0.3", "rest-stream=3")
    with Traffic(release, journal, *rates, f"--tls={clients.folder}") as traffic:
        clients.trust(old, new)
        patch(release, "server-tls", files(new, old, new))
        # Each of the two pods reads its files by itself: several answers in a row are of both.
        wait_until(lambda: all(clients.answer(new, one) == "200" for _ in range(12)
                               for one in (of_old, of_new)), 300,
                   "the servers show the new certificate and trust both authorities", pause=3)
        clients.show(of_new)
        # Calls that began with the old certificate end.
        traffic.flows(10)
        patch(release, "server-tls", files(new, new))
        clients.trust(new)
        wait_until(lambda: all(clients.answer(new, of_old) == "000" for _ in range(12)), 300,
                   "the old authority is trusted no more", pause=3)
        assert clients.answer(new, of_new) == "200"
        traffic.flows(10)
    print(traffic.summary())
    assert release.restarts() == 0
    assert not traffic.failures(), traffic.failures()[:5]
