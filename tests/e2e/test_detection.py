"""Detectors through every transport and client: fixtures, parameters, masks, tiles, drawings."""

import base64
import json
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from goldens import case_facts, cases, expected, served_models, tensors
from server_process import CLIENT, GOLDEN, Server

CASES = GOLDEN / "vil_detection"
BOXES = "vil_detection.retinanet_two_sizes"
MASKS = "vil_detection.maskrcnn_small"


@pytest.fixture(scope="module")
def server():
    models = [f"{name}={directory}" for name, directory in served_models("vil_detection").items()]
    with Server(models, "--dtype=fp32") as running:
        yield running


def pictures(case):
    return sorted((CASES / case / "images").iterdir())


def post(server, path, body, headers=None):
    request = urllib.request.Request(f"http://{server.http}{path}", body, headers or {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def detect(server, model, data, query="", kind="image/png"):
    return post(server, f"/v1/detect?model={model}{query}", data, {"Content-Type": kind})


def decoded(rle):
    """A mask from COCO's run lengths, as pycocotools decodes them."""
    runs, value, shift = [], 0, 0
    for c in rle["counts"].encode():
        group = c - 48
        value |= (group & 31) << shift
        shift += 5
        if group & 32:
            continue
        if group & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    height, width = rle["size"]
    flat = np.repeat(np.arange(len(runs)) % 2, runs)
    assert flat.size == height * width
    return flat.reshape(width, height).T.astype(bool)


def close(boxes, scores, labels, want, i, tolerance):
    assert np.array_equal(labels, want[f"classes.{i}"])
    assert np.abs(np.asarray(scores) - expected(want, f"scores.{i}")).max(initial=0) <= 1e-4
    of = want.get(f"boxes.f64.{i}", want[f"boxes.{i}"])
    assert np.abs(np.asarray(boxes).reshape(-1, 4) - of).max(initial=0) <= tolerance


def test_every_fixture_by_typed_json(server):
    for case in cases("vil_detection"):
        if not (case / "model").exists():
            continue
        want = tensors(case / "expected.safetensors")
        for i, path in enumerate(pictures(case.name)):
            status, answer = detect(server, f"vil_detection.{case.name}", path.read_bytes())
            assert status == 200, answer
            found = answer["detections"]
            close([[d[k] for k in ("x0", "y0", "x1", "y1")] for d in found],
                  [d["score"] for d in found], [d["label_id"] for d in found], want, i,
                  case_facts(case)["tolerance"]["boxes"])
            assert all(d["label"] == f"class_{d['label_id']}" and not d["mask_rle"] for d in found)


@pytest.mark.parametrize("module", [triton_grpc, triton_http])
def test_tensors(server, module):
    grpc = module is triton_grpc
    client = module.InferenceServerClient(server.grpc if grpc else server.http)
    want = tensors(CASES / "maskrcnn_small/expected.safetensors")
    for i, path in enumerate(pictures("maskrcnn_small")):
        tensor = module.InferInput("image", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([path.read_bytes()], dtype=np.object_))
        result = client.infer(MASKS, [tensor])
        close(result.as_numpy("boxes"), result.as_numpy("scores"), result.as_numpy("labels"),
              want, i, 0.005)
        assert result.as_numpy("label_names")[0].decode().startswith("class_")
        assert result.as_numpy("masks") is None  # Only where it is named.
        named = client.infer(MASKS, [tensor], outputs=[module.InferRequestedOutput("masks"),
                                                       module.InferRequestedOutput("features.8")])
        masks = want[f"masks.{i}"].astype(bool)
        runs = named.as_numpy("masks")
        got = np.stack([decoded(json.loads(rle)) for rle in runs.reshape(-1)])
        assert (got != masks).mean() <= 1e-3
        assert np.abs(named.as_numpy("features.8")[0] - want[f"backbone.layer2.{i}"]).max() < 2e-4


def test_masks_as_pixels_and_parameters(server):
    data = base64.b64encode(pictures("maskrcnn_small")[0].read_bytes()).decode()
    body = {"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1], "data": [data]}],
            "parameters": {"score_threshold": 0.1, "max_detections": 3},
            "outputs": [{"name": "masks", "parameters": {"datatype": "BOOL"}}, {"name": "scores"}]}
    url = f"/v2/models/{MASKS}/infer"
    status, answer = post(server, url, json.dumps(body).encode())
    assert status == 200, answer
    masks, scores = answer["outputs"]
    assert masks["datatype"] == "BOOL" and masks["shape"] == [3, 90, 151]
    assert len(scores["data"]) == 3 and min(scores["data"]) > 0.1
    want = tensors(CASES / "maskrcnn_small/expected.safetensors")["masks.0"][:3].astype(bool)
    assert (np.array(masks["data"]).reshape(want.shape) != want).mean() <= 1e-3
    for change, message in (({"parameters": {"score_threshold": 2}}, "score_threshold"),
                            ({"parameters": {"pooling": "cls"}}, "pooling"),
                            ({"outputs": [{"name": "masks", "parameters": {"datatype": "FP32"}}]},
                             "datatype"),
                            ({"outputs": [{"name": "logits"}]}, "logits")):
        status, answer = post(server, url, json.dumps({**body, **change}).encode())
        assert status == 400 and message in answer["error"], answer


def test_every_form_of_the_request_gives_one_answer(server):
    data = pictures("maskrcnn_small")[1].read_bytes()
    bare = detect(server, MASKS, data, "&masks=true&max_detections=5&score_threshold=0.06")[1]
    assert len(bare["detections"]) == 5 and bare["usage"]["width"] == 97
    assert all(json.loads(d["mask_rle"])["size"] == [140, 97] for d in bare["detections"])
    body = {"model": MASKS, "image": base64.b64encode(data).decode(), "masks": True,
            "max_detections": 5, "score_threshold": 0.06}
    assert post(server, "/v1/detect", json.dumps(body).encode())[1]["detections"] == bare["detections"]
    parts = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name, value)
        for name, value in ((b"model", MASKS.encode()), (b"image", data), (b"masks", b"true"),
                            (b"max_detections", b"5"), (b"score_threshold", b"0.06")))
    form = post(server, "/v1/detect", parts + b"--x--\r\n",
                {"Content-Type": "multipart/form-data; boundary=x"})[1]
    assert form["detections"] == bare["detections"]


@pytest.mark.parametrize("model", [BOXES, MASKS])
def test_estimate_of_a_size_on_every_way(server, model):
    """The same answer by gRPC, HTTP and the command line, growing with the picture."""
    def ask(width, height):
        size = {"model": model, "width": width, "height": height}
        status, rest = post(server, "/v1/estimate", json.dumps(size).encode())
        assert status == 200, rest
        call = subprocess.run(["grpcurl", "-plaintext", "-emit-defaults", "-d", json.dumps(size),
                               server.grpc, "longview.v1.ModelService/Estimate"],
                              capture_output=True, text=True, timeout=60)
        assert call.returncode == 0, call.stderr
        line = run(server, "estimate", "--json", f"--model={model}", f"--width={width}",
                   f"--height={height}")
        assert line.returncode == 0, line.stderr
        typed, printed = json.loads(call.stdout), json.loads(line.stdout)
        for other in (typed["seconds"], printed["seconds"]):
            assert other == rest["seconds"]
        for other in (typed["workspace_bytes"], printed["workspace_bytes"]):
            assert other == rest["workspace_bytes"]
        assert (rest["usage"]["width"], rest["usage"]["height"]) == (width, height)
        return rest

    small, large = ask(200, 200), ask(300, 200)
    assert small["fits"] and 0 < small["seconds"] < large["seconds"]
    assert 0 < small["workspace_bytes"] < large["workspace_bytes"]
    for size, field in (({"width": 5}, "height"), ({"width": 60000, "height": 60000}, "width"),
                        ({"num_tokens": 5}, "num_tokens")):
        status, answer = post(server, "/v1/estimate", json.dumps({"model": model, **size}).encode())
        assert status == 400 and answer["error"]["param"] == field, answer


def test_tiles(server):
    data = pictures("maskrcnn_small")[0].read_bytes()
    tiled = '&tile={"size":80,"overlap":20}'.replace('"', "%22")
    first, second = (detect(server, MASKS, data, tiled)[1]["detections"] for _ in range(2))
    assert first == second and first
    assert max(d["x1"] for d in first) <= 151 and max(d["y1"] for d in first) <= 90
    members = detect(server, MASKS, data, "&tile.size=80&tile.overlap=20")[1]["detections"]
    assert members == first
    for tile, message in (('{"size":0}', "tile.size: 0"), ('{"size":9,"overlap":9}', "tile.overlap"),
                          ('{"size":1}', "13590 tiles")):
        status, answer = detect(server, MASKS, data, "&tile=" + tile.replace('"', "%22"))
        assert status == 400 and message in answer["error"]["message"], answer
        assert answer["error"]["param"].startswith("tile."), answer


def test_mistakes_are_named_and_others_go_on(server):
    good = pictures("retinanet_two_sizes")[0].read_bytes()
    before = detect(server, BOXES, good)[1]["detections"]
    for broken in (b"GIF89a", good[:40], good[:-30], good[:33] + b"\0" * 500):
        status, answer = detect(server, BOXES, broken)
        assert status == 422 and answer["error"]["param"] == "image", answer
    for query, field in (("&score_threshold=1.5", "score_threshold"), ("&max_detections=0",
                         "max_detections"), ("&max_detections=5000", "max_detections"),
                         ("&masks=true", "masks"), ("&nonsense=1", "nonsense")):
        status, answer = detect(server, BOXES, good, query)
        assert status == 400 and field in answer["error"]["message"], answer
    status, answer = post(server, f"/v1/classify?model={BOXES}", good, {"Content-Type": "image/png"})
    assert status == 400 and "object-detection" in answer["error"]["message"], answer
    assert detect(server, BOXES, good)[1]["detections"] == before


def test_mutated_files_never_stop_the_server(server):
    """Bytes changed at random: a clear refusal or an answer, never anything else."""
    random = np.random.default_rng(5)
    good = {path.suffix: path.read_bytes() for path in pictures("retinanet_two_sizes")}
    for turn in range(60):
        data = bytearray(good[".png" if turn % 2 else ".jpg"])
        for place in random.integers(0, len(data), 1 + turn % 7):
            data[place] = random.integers(0, 256)
        if turn % 5 == 0:
            del data[random.integers(1, len(data)):]
        status, answer = detect(server, BOXES, bytes(data))
        assert status in (200, 400, 422), answer
    assert detect(server, BOXES, good[".png"])[0] == 200


def run(server, *arguments):
    return subprocess.run([CLIENT, *arguments, f"--server={server.grpc}"], capture_output=True,
                          text=True, timeout=60)


def test_command_line_draws(server, tmp_path):
    """The answer's boxes and masks are in the picture, and where there is nothing it is untouched."""
    image = pytest.importorskip("PIL.Image")
    path, out = pictures("maskrcnn_small")[1], tmp_path / "out.png"
    done = run(server, "detect", f"--model={MASKS}", "--json", "--masks", "--max_detections=3",
               f"--draw={out}", str(path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["detections"]
    before, after = (np.asarray(image.open(p).convert("RGB")).astype(int) for p in (path, out))
    assert before.shape == after.shape and len(found) == 3
    changed = (before != after).any(axis=2)
    height, width = changed.shape
    free = np.ones_like(changed)  # Neither mask, nor frame, nor caption.
    for detection in found:
        x0, y0, x1, y1 = (round(detection[k]) for k in ("x0", "y0", "x1", "y1"))
        mask = decoded(json.loads(detection["mask_rle"]))
        free &= ~mask
        free[max(y0 - 10, 0):y0 + 12, x0:] = False
        for rows, columns in ((slice(y1 - 1, y1), slice(x0, x1)), (slice(y0, y1), slice(x0, x0 + 1)),
                              (slice(y0, y1), slice(x1 - 1, x1))):
            free[rows, columns] = False
        # The best lies on top: its frame has one colour, the classes' own.
        if detection is found[0]:
            colour = after[min(y1, height) - 1, min(x1, width) - 1]
            assert (after[min(y1, height) - 1, x0 + 60:x1] == colour).all()
            assert mask.any() and changed[mask].mean() > 0.9
    assert free.mean() > 0.1 and not changed[free].any()
    two = run(server, "detect", f"--model={MASKS}", f"--draw={out}", str(path), str(path))
    assert two.returncode == 2 and "--draw" in two.stderr


def test_command_line_draws_a_folder(server, tmp_path):
    """Each picture is drawn under its own name, like alone; two of one name are told apart."""
    folder, drawn, alone = tmp_path / "in", tmp_path / "out", tmp_path / "alone.png"
    found = pictures("maskrcnn_small")
    for part, path in (("a", found[0]), ("b", found[1])):
        (folder / part).mkdir(parents=True)
        (folder / part / f"page{path.suffix}").write_bytes(path.read_bytes())
    done = run(server, "detect", f"--model={MASKS}", f"--draw={drawn}/", str(folder))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in drawn.iterdir()) == ["page-2.png", "page.png"]
    for path, name in zip(found, ("page.png", "page-2.png")):
        run(server, "detect", f"--model={MASKS}", f"--draw={alone}", str(path))
        assert (drawn / name).read_bytes() == alone.read_bytes()


def test_command_line_text(server):
    paths = [str(path) for path in pictures("retinanet_two_sizes")]
    done = run(server, "detect", f"--model={BOXES}", "--score_threshold=0.2", *paths)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" found") == 2 and "class_" in done.stdout
    broken = run(server, "detect", f"--model={BOXES}", __file__)
    assert broken.returncode == 1 and "image" in broken.stderr
