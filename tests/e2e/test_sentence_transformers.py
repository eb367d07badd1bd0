"""Directories of sentence-transformers through the running server: OpenAI's endpoint, gRPC and the
Open Inference Protocol against the library's own results."""

import base64
import json
import subprocess

import numpy as np
import pytest
import tritonclient.http

from goldens import assert_close, case_facts, cases, expected, items, tensors
from server_process import GOLDEN, Server

FAMILY = "sentence_transformers"


def of_task(task):
    return [case for case in cases(FAMILY) if case_facts(case)["task"] == task]


def named(case):
    return case.name


@pytest.fixture(scope="module")
def server():
    models = [f"{case.name}={case / 'model'}" for case in cases(FAMILY)]
    with Server([",".join(models)], "--dtype=fp32") as running:
        yield running


def texts_of(case):
    return json.loads((case / "texts.json").read_text())


def embed(server, case, **settings):
    return server.post_json("/v1/embeddings", {"model": case.name, **settings})


def grpc_embed(server, **message):
    ran = subprocess.run(["grpcurl", "-plaintext", "-d", json.dumps(message), server.grpc,
                          "longview.v1.TextService/Embed"], capture_output=True, text=True,
                         timeout=60, check=True)
    return json.loads(ran.stdout)


@pytest.mark.parametrize("case", of_task("embeddings"), ids=named)
class TestEmbeddings:
    def test_every_call_over_http(self, server, case):
        outputs, texts = tensors(case / "expected.safetensors"), texts_of(case)
        for call in texts["calls"]:
            for encoding in ("float", "base64"):
                status, answer = embed(server, case, input=texts["texts"], truncate=True,
                                       encoding_format=encoding, **call["request"])
                assert status == 200, answer
                rows = [entry["embedding"] for entry in answer["data"]]
                if encoding == "base64":
                    rows = [np.frombuffer(base64.b64decode(row), "<f4") for row in rows]
                assert_close(rows, expected(outputs, f"embedding.{call['name']}"),
                             case_facts(case)["tolerance"]["embedding"], call["name"])

    def test_every_call_over_grpc_and_the_inference_protocol(self, server, case):
        outputs, texts = tensors(case / "expected.safetensors"), texts_of(case)
        client = tritonclient.http.InferenceServerClient(server.http)
        tolerance = case_facts(case)["tolerance"]["embedding"]
        for call in texts["calls"]:
            wanted = expected(outputs, f"embedding.{call['name']}")
            answer = grpc_embed(server, model=case.name, text=texts["texts"][0], truncate=True,
                                **call["request"])
            assert_close(answer["embedding"], wanted[0], tolerance, call["name"])
            tensor = tritonclient.http.InferInput("text", [1], "BYTES")
            tensor.set_data_from_numpy(np.array([texts["texts"][0].encode()], dtype=object))
            result = client.infer(case.name, [tensor],
                                  parameters={"truncate": True, **call["request"]})
            assert_close(result.as_numpy("embedding")[0], wanted[0], tolerance, call["name"])

    def test_token_ids(self, server, case):
        """/tokenize gives the library's ids, and an embedding reads as many of them: saved truncation
        and padding do not count, the limit of the directory does."""
        ids = items(tensors(case / "inputs.safetensors"), "input_ids")
        for index, text in enumerate(texts_of(case)["texts"]):
            wanted = ids[index].tolist()
            tokens = server.post_json("/tokenize", {"model": case.name, "text": text})[1]["tokens"]
            got = [token["id"] for token in tokens]
            if len(got) > len(wanted):
                got = got[:len(wanted) - 1] + got[-1:]
            assert got == wanted, text
            usage = embed(server, case, input=text, truncate=True, prompt="")[1]["usage"]
            assert usage["prompt_tokens"] == len(wanted)
            assert usage["truncated_tokens"] == len(tokens) - len(wanted)

    def test_bad_settings(self, server, case):
        for settings in texts_of(case)["refused"]:
            status, answer = embed(server, case, input="some text", **settings)
            assert status == 400, (settings, answer)
            assert answer["error"]["param"] in settings
        status, answer = embed(server, case, input="some text", truncation_direction="up")
        assert status == 400 and answer["error"]["param"] == "truncation_direction"

    def test_late_chunks(self, server, case):
        outputs, texts = tensors(case / "expected.safetensors"), texts_of(case)
        for call in texts.get("late_chunking", []):
            text = texts["texts"][call["text"]]
            status, answer = embed(server, case, input=text, **call["request"])
            assert status == 200, answer
            rows = [entry["embedding"] for entry in answer["data"]]
            assert_close(rows, expected(outputs, call["expected"]),
                         case_facts(case)["tolerance"]["embedding"], call["expected"])
            assert [entry["index"] for entry in answer["data"]] == list(range(len(rows)))
            spans = call["request"].get("chunks") or call["token_spans"]
            assert [entry["chunk"] for entry in answer["data"]] == [
                {"input": 0, "start": start, "end": end} for start, end in spans]


def test_prompts_are_listed_where_one_is_unknown(server):
    for case in of_task("embeddings"):
        config = json.loads((case / "model/config_sentence_transformers.json").read_text())
        status, answer = embed(server, case, input="x", prompt_name="nobody")
        assert status == 400
        for name in config.get("prompts") or {}:
            assert name in answer["error"]["message"]


def test_left_and_right_ends_of_a_long_text(server):
    """A cut text has the embedding of the end that stays."""
    for case in of_task("embeddings"):
        long = "alpha " * 2000 + "omega " * 2000
        both = [embed(server, case, input=long, truncate=True, prompt="",
                      truncation_direction=side)[1] for side in ("right", "left")]
        alone = [embed(server, case, input=word * 2000, truncate=True, prompt="",
                       truncation_direction=side)[1]
                 for word, side in (("alpha ", "right"), ("omega ", "left"))]
        for cut, end in zip(both, alone, strict=True):
            assert cut["usage"]["truncated_tokens"] > 0
            assert_close(cut["data"][0]["embedding"], end["data"][0]["embedding"], 1e-6, case.name)
        status, answer = embed(server, case, input=long)
        assert status == 400 and answer["error"]["param"] == "input"


@pytest.mark.parametrize("case", of_task("multi-vector"), ids=named)
def test_multi_vector_models(server, case):
    outputs = tensors(case / "expected.safetensors")
    client = tritonclient.http.InferenceServerClient(server.http)
    for index, item in enumerate(texts_of(case)):
        tensor = tritonclient.http.InferInput("text", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([item["text"].encode()], dtype=object))
        parameters = {"truncate": True}
        if item["prompt_name"]:
            parameters["prompt_name"] = item["prompt_name"]
        result = client.infer(case.name, [tensor], parameters=parameters)
        assert_close(result.as_numpy("last_hidden_state")[0],
                     expected(outputs, f"last_hidden_state.{index}"),
                     case_facts(case)["tolerance"]["hidden"], index)
    assert server.post_json("/v1/embeddings", {"model": case.name, "input": "x"})[0] == 400


def test_a_broken_pooling_does_not_stop_other_tasks(tmp_path):
    """A pooling that is not served is refused where an embedding is asked for."""
    for case in cases("modernbert"):
        if case_facts(case)["task"] == "token-classification":
            break
    directory = tmp_path / "model"
    directory.mkdir()
    for file in (case / "model").iterdir():
        (directory / file.name).write_bytes(file.read_bytes())
    (directory / "1_Pooling").mkdir()
    (directory / "1_Pooling/config.json").write_text('{"pooling_mode": "attention"}')
    with Server([f"broken={directory}"], "--dtype=fp32") as server:
        infer = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 3],
                             "data": [5, 6, 7]}]}
        status, answer = server.post_json("/v2/models/broken/infer", infer)
        assert status == 200 and answer["outputs"][0]["name"] == "logits", answer
        status, answer = server.post_json("/v1/embeddings", {"model": "broken", "input": [5, 6, 7]})
        assert status == 400, answer


@pytest.mark.skipif(not (GOLDEN / FAMILY).exists(), reason="no such fixtures")
def test_there_are_cases_of_every_kind():
    kinds = {case_facts(case)["task"] for case in cases(FAMILY)}
    assert kinds == {"embeddings", "multi-vector", "rerank"}
