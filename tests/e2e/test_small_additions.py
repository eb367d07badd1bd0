"""Health without a body, the API page, an estimate of the only model, kserve's default call."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from goldens import items, tensors
from server_process import GOLDEN, ROOT, SERVER, Server

CASE = GOLDEN / "longformer/classification"


@pytest.fixture(scope="module")
def one_model():
    with Server([f"only={CASE / 'model'}"], "--dtype=fp32") as server:
        yield server


def test_health(one_model):
    status, headers, body = one_model.get("/health")
    assert (status, body) == (200, b"") and headers["x-request-id"]
    with Server([f"only={CASE / 'model'}"], wait=False) as loading:
        loading.wait_ready()
        assert loading.get("/health")[0] == 200


def test_docs_need_nothing_from_elsewhere(one_model):
    status, headers, page = one_model.get("/docs")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    text = page.decode()
    assert "openapi.json" in text and not re.search(r"https?://|//cdn", text)


def test_openapi_names_what_happens(one_model):
    document = json.loads(one_model.get("/openapi.json")[2])
    assert "422" in document["paths"]["/v1/classify"]["post"]["responses"]
    assert "422" in document["paths"]["/v1/detect"]["post"]["responses"]
    used = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert used == set(document["components"]["schemas"])


def test_every_route_is_in_the_document():
    """The document and the routers agree."""
    document = json.loads((ROOT / "server/http/assets/openapi.json").read_text())
    sources = [path.read_text() for path in (ROOT / "server/http").rglob("*.cc")]
    routes = {path for source in sources
              for path in re.findall(r'"(/(?:v[12]\b|[a-z.]+)[A-Za-z0-9_/{}.-]*)"', source)}
    not_served = {"/v1/chat/completions", "/v1/responses"}
    assert {path for path in routes if path.split("/")[1]} - not_served - {"/v1", "/v2/", "/api"} <= \
        set(document["paths"]) | {"/v2/repository/"}, sorted(routes - set(document["paths"]))


def test_estimate_of_the_only_model(one_model, zoo_server):
    status, answer = one_model.post_json("/v1/estimate", {"num_tokens": 100})
    assert status == 200 and answer["seconds"] > 0
    status, answer = zoo_server.post_json("/v1/estimate", {"num_tokens": 100})
    assert status == 400 and answer["error"]["param"] == "model"
    assert "code-language" in answer["error"]["message"]


@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_kserve_with_default_settings(one_model, transport):
    script = pathlib.Path(__file__).parent / "kserve_call.py"
    ids = items(tensors(CASE / "inputs.safetensors"), "input_ids")[4][None]
    address = one_model.url if transport == "rest" else one_model.grpc
    done = subprocess.run([sys.executable, script, f"{transport}-default", address, "only",
                           json.dumps(ids.tolist())], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    logits = np.array(json.loads(done.stdout.splitlines()[-1]))
    wanted = tensors(CASE / "expected.safetensors")
    assert np.abs(logits[0] - wanted.get("logits.4.f64", wanted["logits.4"])).max() < 1e-4


def test_binary_sizes_over_grpc_are_checked(one_model):
    client = tritonclient.grpc.InferenceServerClient(one_model.grpc)
    ids = items(tensors(CASE / "inputs.safetensors"), "input_ids")[4][None]
    given = tritonclient.grpc.InferInput("input_ids", list(ids.shape), "INT64")
    given.set_data_from_numpy(ids)
    given._get_tensor().parameters["binary_data_size"].int64_param = ids.nbytes
    output = tritonclient.grpc.InferRequestedOutput("logits")
    output._get_tensor().parameters["binary_data"].bool_param = True
    assert client.infer("only", [given], outputs=[output]).as_numpy("logits").shape[0] == 1
    given._get_tensor().parameters["binary_data_size"].int64_param = 7
    with pytest.raises(tritonclient.grpc.InferenceServerException, match="binary_data_size is 7"):
        client.infer("only", [given])


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_class_count(one_model, transport):
    """Triton's classification: the best classes as score:index:label."""
    module = {"grpc": tritonclient.grpc, "http": tritonclient.http}[transport]
    client = module.InferenceServerClient(getattr(one_model, transport))
    ids = items(tensors(CASE / "inputs.safetensors"), "input_ids")[4][None]
    given = module.InferInput("input_ids", list(ids.shape), "INT64")
    given.set_data_from_numpy(ids)
    logits = client.infer("only", [given]).as_numpy("logits")[0]
    for name, count in (("logits", 3), ("probabilities", 99)):
        output = module.InferRequestedOutput(name, class_count=count)
        classes = client.infer("only", [given], outputs=[output]).as_numpy(name)
        rows = [text.decode().split(":") for text in classes[0]]
        assert [int(index) for _, index, _ in rows] == list(np.argsort(-logits)[:count])
        assert classes.shape == (1, min(count, len(logits)))
    assert abs(float(rows[0][0]) - float(np.exp(logits).max() / np.exp(logits).sum())) < 1e-4
    assert rows[0][2], "the label's name"


def test_another_task_is_told_where_to_go(zoo_server):
    status, answer = zoo_server.post_json("/v1/classify", {"model": "code-lm", "text": "x"})
    assert status == 400
    message = answer["error"]["message"]
    assert "/v1/completions" in message and "code-language" in message


def test_timings_are_whole_microseconds(one_model):
    timing = one_model.post_json("/v1/classify", {"token_ids": [0, 5, 2]})[1]["timing"]
    for name in ("queue_seconds", "compute_seconds", "total_seconds"):
        assert abs(timing[name] * 1e6 - round(timing[name] * 1e6)) < 1e-6, timing


def test_too_many_new_tokens(zoo_server):
    body = {"model": "code-lm", "prompt": "def main():", "max_tokens": 10 ** 6}
    status, answer = zoo_server.post_json("/v1/completions", body)
    assert status == 400 and answer["error"]["param"] == "max_tokens", answer
    left = int(re.search(r"at most (\d+) are left", answer["error"]["message"])[1])
    assert "1000000" in answer["error"]["message"] and left > 1000
    estimate = {"model": "code-lm", "text": "def main():", "max_tokens": left}
    assert zoo_server.post_json("/v1/estimate", estimate)[0] == 200


def test_truncation_is_counted(one_model):
    limit = json.loads(one_model.get("/v1/models/only")[2])["max_tokens"]
    before = one_model.metric("longview_truncated_requests_total", model="only")
    cut = one_model.metric("longview_truncated_tokens_total", model="only")
    body = {"token_ids": [5] * (limit + 7), "truncate": True}
    status, answer = one_model.post_json("/v1/classify", body)
    assert status == 200 and answer["usage"]["truncated_tokens"] == 7
    assert one_model.post_json("/v1/classify", {"token_ids": [5] * 9, "truncate": True})[0] == 200
    assert one_model.metric("longview_truncated_requests_total", model="only") == before + 1
    assert one_model.metric("longview_truncated_tokens_total", model="only") == cut + 7


def server(*arguments):
    return subprocess.run([SERVER, *arguments], capture_output=True, text=True, timeout=60)


def test_flags_that_are_misspelt():
    done = server("--htpp_port=1")
    assert done.returncode == 2 and "did you mean --http_port?" in done.stderr
    assert "did you mean" not in server("--zebra=1").stderr


def test_members_that_are_misspelt(one_model):
    for path, body, meant in (("/v1/classify", {"text": "a", "topk": 1}, "top_k"),
                              ("/v1/completions", {"prompt": "a", "max_token": 1}, "max_tokens")):
        status, answer = one_model.post_json(path, body)
        message = answer["error"] if isinstance(answer["error"], str) else answer["error"]["message"]
        assert status == 400 and f"did you mean {meant}?" in message, message


def test_all_problems_are_told(tmp_path):
    done = server("--validate_config", "--drain_seconds=-1", "--log_level=loud", "--dtype=int3")
    assert done.returncode == 2
    for flag in ("drain_seconds", "log_level", "dtype"):
        assert flag in done.stderr.splitlines()[-1]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    done = server("--validate_config", str(tmp_path))
    assert done.returncode == 1
    assert all(f"model {name}" in done.stderr for name in ("a", "b")), done.stderr
    done = server("--validate_config", str(CASE / "model"))
    assert done.returncode == 0 and "fine: 1 model" in done.stdout


def test_the_log_says_why_and_where(one_model):
    one_model.post_json("/v1/classify", {"model": "nobody", "text": "x"})
    lines = [json.loads(line) for line in one_model.log().splitlines()]
    refused = [line for line in lines if line.get("code") == "NOT_FOUND"]
    assert refused and refused[-1]["reason"] == "MODEL_NOT_FOUND"
    listening = next(line for line in lines if "url" in line)
    assert listening["url"] == f"http://{one_model.http}/"
