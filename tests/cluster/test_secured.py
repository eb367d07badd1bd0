"""The secured overlay: Secrets made after it, and replaced under running servers."""

import base64
import json
import os
import shutil

from certificates import Authority
from chart import Release
from node import ROOT, wait_until

MANIFESTS = ROOT / "deploy/kubernetes"


def secret_files(folder, authority):
    """tls.crt and tls.key of a new certificate, as samples/secrets.sh takes them."""
    folder.mkdir(exist_ok=True)
    certificate, key = authority.issue("server")
    shutil.copy(certificate, folder / "tls.crt")
    shutil.copy(key, folder / "tls.key")


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
        encoded = {name: base64.b64encode((tmp_path / "second" / name).read_bytes()).decode()
                   for name in ("tls.crt", "tls.key")}
        release.kubectl("patch", "secret", "longview-tls", "-p", json.dumps({"data": encoded}))
        keys = base64.b64encode(b"team-a:the-second-key-of-team-a\n").decode()
        release.kubectl("patch", "secret", "longview-keys", "-p",
                        json.dumps({"data": {"keys": keys}}))
        wait_until(lambda: answer(node, other, "the-second-key-of-team-a") == "200" and
                   answer(node, other, old) == "401" and answer(node, authority, old) == "000",
                   300, "the new certificate and the new key hold", pause=3)
        assert release.restarts() == 0

        # What `delete -k` leaves: the namespace and the Secrets.
        node.kubectl("delete", "-k", MANIFESTS / "overlays/secured", "--timeout=200s")
        assert release.get("secret", "longview-keys")
    finally:
        node.kubectl("delete", "namespace", "longview", "--timeout=200s", check=False)
