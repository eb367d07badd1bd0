"""The pods that KServe makes of overlays/kserve, answered over its protocol; KServe itself does not run.

As its controller for raw deployments (0.13) does it: arguments of the service behind those of the
runtime, {{.Name}} filled in, a volume's folder mounted at /mnt/models, and a download's target there,
which an init container fills (here from the volume)."""

import base64
import json
import shutil
import sys

import pytest
import yaml

from chart import is_ready
from node import ROOT, wait_until

OVERLAY = ROOT / "deploy/kubernetes/overlays/kserve"
CALL = ROOT / "tests/e2e/kserve_call.py"
PAGE = next((ROOT / "models/zoo/samples").glob("*.*"))


def document(name):
    return yaml.safe_load((OVERLAY / f"{name}.yaml").read_text())


def pod_of(service, folder):
    """The pod for an InferenceService whose model lies in `folder` of the claim `models`."""
    name, predictor = service["metadata"]["name"], service["spec"]["predictor"]
    runtime = document("runtime")["spec"]
    container, = runtime["containers"]
    model = predictor["model"]
    container["args"] = [one.replace("{{.Name}}", name)
                         for one in container["args"] + model.get("args", [])]
    claim = {"name": "kserve-pvc-source", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    spec = {"containers": [container], "volumes": [claim],
            "terminationGracePeriodSeconds": predictor["terminationGracePeriodSeconds"]}
    if model["storageUri"].startswith("pvc://"):
        container["volumeMounts"] = [{"name": "kserve-pvc-source", "mountPath": "/mnt/models",
                                      "subPath": folder, "readOnly": True}]
    else:
        target = {"name": "kserve-provision-location", "mountPath": "/mnt/models"}
        spec["volumes"].append({"name": target["name"], "emptyDir": {}})
        container["volumeMounts"] = [target | {"readOnly": True}]
        spec["initContainers"] = [{
            "name": "storage-initializer", "image": container["image"],
            "command": ["sh", "-c", f"cp /mnt/pvc/{folder}/*.* /mnt/models/"],
            "securityContext": container["securityContext"],
            "volumeMounts": [target, {"name": "kserve-pvc-source", "mountPath": "/mnt/pvc"}]}]
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": f"{name}-predictor", "annotations": runtime["annotations"]}}


@pytest.fixture
def start(release, tmp_path):
    """start(SERVICE, MODEL): the running pod of a service with one of the bundled models."""
    release.volume(tmp_path / "volume")
    (tmp_path / "volume").mkdir()

    def started(name, model):
        shutil.copytree(ROOT / "models/zoo" / model, tmp_path / "volume" / name)
        release.apply(pod_of(document(name), name))
        return wait_until(lambda: next((
            pod for pod in release.get("pods")["items"] if is_ready(pod)), None), 300,
            "the pod is ready", pause=2)
    return started


def test_a_text_model(release, start):
    """grpc-v2 and v2, by the stock client, with the model as a storage initializer leaves it."""
    pod = start("longformer", "code-language")
    address = pod["status"]["podIP"]
    answers = []
    for transport, target in (("grpc", f"{address}:9000"), ("rest", f"http://{address}:8080"),
                              ("binary", f"http://{address}:8080")):
        said = release.node.within(sys.executable, CALL, transport, target, "longformer",
                                   "[[0, 5, 6, 7, 2]]")
        answers.append(json.loads(said.splitlines()[-1]))
    assert len(answers[0][0]) == 37
    assert answers[0] == answers[1] == answers[2]


def test_a_picture_model(release, start):
    """v2 with a picture, from a folder of a volume."""
    pod = start("detector", "page-layout")
    image = base64.b64encode(PAGE.read_bytes()).decode()
    answer = json.loads(release.post("/v2/models/detector/infer", {"inputs": [{
        "name": "image", "datatype": "BYTES", "shape": [1], "data": [image]}]}, pod))
    boxes = next(output for output in answer["outputs"] if output["name"] == "boxes")
    assert boxes["shape"][-1] == 4 and boxes["data"]
