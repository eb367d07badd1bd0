"""Models that come from outside the image: a volume whose content changes, and downloads by checksum."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys

from machine import load_curl_image
from node import NODE, ROOT, wait_until
from traffic import Traffic

MODEL = ROOT / "models/zoo/code-language"
PORT = 8190
REVISION = "0123456789abcdef0123456789abcdef01234567"


def put(folder, label):
    """A model whose classes' names begin with this label, in the place of the one in `folder` at once."""
    fresh, old = folder.with_name(".fresh"), folder.with_name(".old")
    shutil.copytree(MODEL, fresh)
    config = json.loads((fresh / "config.json").read_text())
    config["id2label"] = {key: f"{label} {name}" for key, name in config["id2label"].items()}
    config["label2id"] = {name: int(key) for key, name in config["id2label"].items()}
    (fresh / "config.json").write_text(json.dumps(config))
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def labels(release, pod):
    body = {"model": "code-language", "text": (ROOT / "kernels/span/plan.h").read_text()}
    return json.loads(release.ask("/v1/classify", body, pod)[0])["labels"][0]["name"]


def test_a_volume_gets_new_content(release, journal, tmp_path):
    """Under calls: a new directory by name and `kubectl rollout restart`, then another one and the
    repository's load call to each pod. No call fails, and afterwards every answer is the new one."""
    volume = tmp_path / "models"
    volume.mkdir()
    put(volume / "code-language", "first")
    release.volume(volume)
    release.install({"models": {"source": "volume", "volume": {"claimName": "models"}},
                     "server": {"extraFlags": ["--allow_model_control"]}})
    with Traffic(release, journal, "grpc=0.5", "rest=0.5", "--changes") as traffic:
        put(volume / "code-language", "second")
        traffic.flows(5)
        assert {labels(release, pod) for pod in release.ready_pods()} == {"first C++"}
        release.kubectl("rollout", "restart", "deployment/longview")
        release.kubectl("rollout", "status", "deployment/longview", "--timeout=600s", timeout=700)
        release.wait_ready(2)
        assert {labels(release, pod) for pod in release.ready_pods()} == {"second C++"}
        # The pods that leave still answer as they did.
        traffic.flows(15)

        put(volume / "code-language", "third")
        for pod in release.ready_pods():
            release.post("/v2/repository/models/code-language/load", {}, pod, ["Host: localhost"])
        assert {labels(release, pod) for pod in release.ready_pods()} == {"third C++"}
        traffic.flows(5)
    print(traffic.summary())
    assert not traffic.failures(), traffic.failures()[:5]
    assert release.restarts() == 0
    for kind in ("grpc", "rest"):
        answers = [call["answer"] for call in traffic.calls if call["kind"] == kind]
        assert len(set(answers)) == 3, set(answers)
        assert len({answers[0], answers[-1]}) == 2 and answers[-1] not in answers[:len(answers) // 2]


@contextlib.contextmanager
def hub(node, folder):
    """A model hub on the node, reached by pods: serves files of `folder`."""
    server = subprocess.Popen(
        node.inside(sys.executable, "-m", "http.server", PORT, "--bind", NODE, "--directory", folder,
                    mounts=False), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: "200" in node.run("curl", "-sI", f"http://{NODE}:{PORT}/", check=False), 60,
                   "the hub answers")
        yield f"http://{NODE}:{PORT}"
    finally:
        server.terminate()
        server.wait(30)


def test_a_download_is_checked(release, tmp_path):
    """The init container takes files with the right SHA-256. Of one with a changed byte it says the
    name, no pod starts from it, and the pods that run go on."""
    load_curl_image(release.node)
    files = tmp_path / f"somebody/code-language/resolve/{REVISION}"
    shutil.copytree(MODEL, files)
    names = ("config.json", "tokenizer.json", "tokenizer_config.json", "longview.json", "model.safetensors")
    with hub(release.node, tmp_path) as endpoint:
        values = {"replicas": 1, "models": {"source": "download", "download": {
            "endpoint": endpoint, "repository": "somebody/code-language", "revision": REVISION,
            "files": [{"path": name, "sha256": hashlib.sha256((files / name).read_bytes()).hexdigest()}
                      for name in names]}}}
        release.install(values)
        good, = release.ready_pods()
        assert labels(release, good) == "C++"

        weights = bytearray((files / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (files / "model.safetensors").write_bytes(weights)
        release.install(values | {"podAnnotations": {"example.com/round": "2"}}, wait=False)

        def bad():
            for pod in release.pods():
                for status in pod["status"].get("initContainerStatuses", []):
                    ended = status["lastState"].get("terminated") or status["state"].get("terminated")
                    if ended and ended["exitCode"]:
                        return pod["metadata"]["name"]
            return None
        name = wait_until(bad, 300, "the init container ends with an error", pause=1)
        log = release.kubectl("logs", name, "-c", "download")
        print(log)
        assert "model.safetensors: FAILED" in log and "config.json: OK" in log
        now, = release.ready_pods()
        assert now["metadata"]["uid"] == good["metadata"]["uid"] and labels(release, now) == "C++"
