"""Image classifiers through every transport: fixtures, typed calls, broken pictures."""

import base64
import io
import json
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from PIL import Image, ImageOps

from goldens import cases, items, served_models, tensors
from server_process import GOLDEN, Server

TOLERANCE = 1e-4
FAMILIES = ("vil", "vil_ls", "cvt_ls")
PICTURES = GOLDEN / "vil/pictures_48"
MODEL = "vil.pictures_48"


@pytest.fixture(scope="module")
def server():
    models = [f"{name}={directory}" for family in FAMILIES
              for name, directory in served_models(family).items()]
    with Server(models, "--dtype=fp32") as running:
        yield running


def post(server, path, body, headers=None):
    request = urllib.request.Request(f"http://{server.http}{path}", body, headers or {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def pictures(case):
    return sorted((case / "images").iterdir())


def batches(case):
    """(pixel values, logits wanted): one batch, or images of different sizes one by one."""
    inputs, expected = (tensors(case / f"{name}.safetensors") for name in ("inputs", "expected"))
    want = expected.get("logits.f64", expected["logits"])
    if "pixel_values" in inputs:
        yield inputs["pixel_values"], want
    for i, pixels in items(inputs, "pixel_values").items():
        yield pixels[np.newaxis], want[i:i + 1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_fixtures_by_pixel_values(server, transport, family):
    client = {"grpc": lambda: triton_grpc.InferenceServerClient(server.grpc),
              "http": lambda: triton_http.InferenceServerClient(server.http)}[transport]()
    module = triton_grpc if transport == "grpc" else triton_http
    for case, (pixels, want) in ((each, batch) for each in cases(family) for batch in batches(each)):
        tensor = module.InferInput("pixel_values", list(pixels.shape), "FP32")
        tensor.set_data_from_numpy(pixels)
        result = client.infer(f"{family}.{case.name}", [tensor])
        assert np.abs(result.as_numpy("logits") - want).max() <= TOLERANCE, case.name
        assert result.as_numpy("probabilities").sum() == pytest.approx(len(pixels), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_fixtures_by_pictures(server, family):
    for case in cases(family):
        if not (case / "images").exists():
            continue
        want = tensors(case / "expected.safetensors")["logits.f64"]
        for i, path in enumerate(pictures(case)):
            if "exif" in path.name:
                continue  # The fixture took it as it lies; the server turns it.
            url = f"/v1/classify?model={family}.{case.name}&return_logits=true"
            kind = "image/png" if path.suffix == ".png" else "image/jpeg"
            status, answer = post(server, url, path.read_bytes(), {"Content-Type": kind})
            assert status == 200, answer
            tolerance = TOLERANCE if path.suffix == ".png" else 0.02
            assert np.abs(np.array(answer["logits"]) - want[i]).max() <= tolerance, path.name


def test_pictures_in_every_form_give_one_answer(server):
    want = tensors(PICTURES / "expected.safetensors")["logits.f64"]
    for i, path in enumerate(pictures(PICTURES)):
        data = path.read_bytes()
        kind = "image/png" if path.suffix == ".png" else "image/jpeg"
        status, bare = post(server, f"/v1/classify?model={MODEL}&return_logits=true", data,
                            {"Content-Type": kind})
        assert status == 200, bare
        # Another decoder than the fixture's may differ by a level in lossy pictures.
        tolerance = TOLERANCE if path.suffix == ".png" else 0.02
        if "exif" not in path.name:
            assert np.abs(np.array(bare["logits"]) - want[i]).max() <= tolerance, path.name
        assert bare["usage"]["width"] > 0 and bare["usage"]["height"] > 0
        body = {"model": MODEL, "image": base64.b64encode(data).decode(), "return_logits": True}
        assert post(server, "/v1/classify", json.dumps(body).encode())[1]["logits"] == bare["logits"]
        infer = {"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1],
                             "data": [body["image"]]}]}
        answer = post(server, f"/v2/models/{MODEL}/infer", json.dumps(infer).encode())[1]
        logits = next(o for o in answer["outputs"] if o["name"] == "logits")["data"]
        assert np.array_equal(np.float32(logits), np.float32(bare["logits"]))


def test_a_classifier_sees_a_turned_picture_upright(server):
    path = next(path for path in pictures(PICTURES) if "exif" in path.name)
    upright = io.BytesIO()
    with Image.open(path) as turned:
        ImageOps.exif_transpose(turned).save(upright, "PNG")
    url = f"/v1/classify?model={MODEL}&return_logits=true"
    logits = [post(server, url, data, {"Content-Type": kind})[1]["logits"] for data, kind in
              ((path.read_bytes(), "image/jpeg"), (upright.getvalue(), "image/png"))]
    assert np.abs(np.array(logits[0]) - np.array(logits[1])).max() <= 0.02


def test_feature_maps(server):
    data = pictures(PICTURES)[0].read_bytes()
    body = {"model": MODEL, "image": base64.b64encode(data).decode(), "strides": [4, 32]}
    status, answer = post(server, "/v1/features", json.dumps(body).encode())
    assert status == 200, answer
    assert [m["stride"] for m in answer["features"]] == [4, 32]
    for feature in answer["features"]:
        side = 48 // feature["stride"]
        assert (feature["height"], feature["width"]) == (side, side)
        assert len(feature["values"]) == feature["channels"] * side * side


def test_maps_that_there_are_not(server):
    image = base64.b64encode(pictures(PICTURES)[0].read_bytes()).decode()
    for strides, problem in (([5], "5 is none of"), ([4, 4], "4 is named twice")):
        body = {"model": MODEL, "image": image, "strides": strides}
        status, answer = post(server, "/v1/features", json.dumps(body).encode())
        assert status == 400 and answer["error"]["param"] == "strides", answer
        assert problem in answer["error"]["message"]
    infer = {"inputs": [{"name": "image", "datatype": "BYTES", "shape": [2], "data": [image] * 2}],
             "outputs": [{"name": "features.4"}]}
    status, answer = post(server, f"/v2/models/{MODEL}/infer", json.dumps(infer).encode())
    assert status == 400 and "n is 2" in answer["error"], answer


def test_bad_pictures_are_named_and_others_go_on(server):
    good = pictures(PICTURES)[0].read_bytes()
    url = f"/v1/classify?model={MODEL}"
    kind = {"Content-Type": "image/png"}
    before = post(server, url, good, kind)[1]["labels"]
    for broken in (b"GIF89a", good[:40], good[:-30], good[:33] + b"\0" * 500):
        status, answer = post(server, url, broken, kind)
        assert status == 422, answer
        assert answer["error"]["param"] == "image" and "image" in answer["error"]["message"]
    status, answer = post(server, url, b"", kind)
    assert status == 400, answer
    assert post(server, url, good, kind)[1]["labels"] == before


def test_typed_grpc(server):
    def call(request):
        return subprocess.run(
            ["grpcurl", "-plaintext", "-d", json.dumps(request), server.grpc,
             "longview.v1.VisionService/ClassifyImage"], capture_output=True, text=True, timeout=60)

    image = base64.b64encode(pictures(PICTURES)[0].read_bytes()).decode()
    answer = call({"model": MODEL, "image": image, "top_k": 2})
    assert answer.returncode == 0, answer.stderr
    labels = json.loads(answer.stdout)["labels"]
    assert len(labels) == 2 and labels[0]["score"] >= labels[1]["score"]
    refused = call({"model": MODEL})
    assert "InvalidArgument" in refused.stderr and "image" in refused.stderr
