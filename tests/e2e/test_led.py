"""LED against the real binary: summaries through every API, streamed and whole, and bad input."""

import json
import subprocess

import numpy as np
import openai
import pytest
import tritonclient.http

from goldens import case_facts, tensors
from server_process import GOLDEN, Server

SUMMARIES = GOLDEN / "led/text_summarize"
GENERATE = GOLDEN / "led/generate"
TEXTS = json.loads((SUMMARIES / "texts.json").read_text())
HUGGINGFACE_DEFAULT = 20  # New tokens where nobody says anything.


@pytest.fixture(scope="module")
def led():
    models = f"summary={SUMMARIES / 'model'},ids={GENERATE / 'model'}"
    with Server([models], "--dtype=fp32", "--cache_bytes=256MiB") as server:
        yield server


@pytest.fixture(scope="module")
def client(led):
    return openai.OpenAI(base_url=f"{led.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def triton(led):
    return tritonclient.http.InferenceServerClient(led.http)


def generate(server, **request):
    """The messages of typed Generate, put together."""
    done = subprocess.run(["grpcurl", "-plaintext", "-d", json.dumps(request), server.grpc,
                           "longview.v1.TextService/Generate"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    decoder, text, messages = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        message, end = decoder.raw_decode(text)
        messages.append(message)
        text = text[end:].lstrip()
    return messages


def infer_ids(triton, item, parameters, start=None, outputs=("token_ids", "num_tokens", "scores")):
    inputs = tensors(GENERATE / "inputs.safetensors")
    names = {"input_ids": inputs[f"input_ids.{item}"]}
    if f"global_attention_mask.{item}" in inputs:
        names["global_attention_mask"] = inputs[f"global_attention_mask.{item}"]
    if start is not None:
        names["decoder_input_ids"] = np.array(start)
    tensors_in = []
    for name, values in names.items():
        tensor = tritonclient.http.InferInput(name, [1, len(values)], "INT64")
        tensor.set_data_from_numpy(values.reshape(1, -1).astype(np.int64))
        tensors_in.append(tensor)
    return triton.infer("ids", tensors_in, parameters=parameters, outputs=[
        tritonclient.http.InferRequestedOutput(name) for name in outputs])


class TestSummaries:
    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_typed_and_streamed(self, led, text):
        given = {"text": text["text"]} if text["text"] else {"token_ids": text["input_ids"]}
        messages = generate(led, model="summary", truncate=True,
                            global_positions=text["global"], **given)
        assert "".join(m.get("text", "") for m in messages) == text["output_text"]
        ids = [i for m in messages for i in m.get("token_ids", [])]
        assert ids == text["output_ids"][1:]
        assert messages[-1]["usage"]["input_tokens"] == len(text["input_ids"])

    def test_completions_read_the_prompt_as_the_document(self, led, client):
        text = TEXTS[0]
        options = {"temperature": 0, "max_tokens": 12, "extra_body": {"num_beams": 1}}
        whole = client.completions.create(model="summary", prompt=text["text"], **options)
        pieces = client.completions.create(model="summary", prompt=text["text"], stream=True,
                                           **options)
        assert "".join(p.choices[0].text for p in pieces) == whole.choices[0].text
        assert whole.usage.prompt_tokens == len(text["input_ids"])
        assert 0 < whole.usage.completion_tokens <= 12

    def test_completions_sample_with_one_document(self, client):
        answer = client.completions.create(model="summary", prompt=TEXTS[0]["text"], n=3, seed=5,
                                           temperature=1.2, max_tokens=10,
                                           extra_body={"num_beams": 1})
        assert len({choice.text for choice in answer.choices}) == 3


RUNS = [run for run in case_facts(GENERATE)["runs"] if isinstance(run["item"], int)]


class TestOpenInference:
    @pytest.mark.parametrize("run", RUNS[::3], ids=lambda run: f"{run['run']}.{run['item']}")
    def test_recorded_runs(self, triton, run):
        expected = tensors(GENERATE / "expected.safetensors")
        parameters = {name: value if not isinstance(value, list) else json.dumps(value)
                      for name, value in run["params"].items()}
        if "max_length" not in parameters and "max_new_tokens" not in parameters:
            parameters["max_new_tokens"] = HUGGINGFACE_DEFAULT
        start = run.get("decoder_input_ids")
        skipped = 1 if start is None else len(start) + (start[0] != 2)
        answer = infer_ids(triton, run["item"], parameters, start)
        rows = expected[f"sequences.{run['run']}.{run['item']}"].reshape(
            len(answer.as_numpy("num_tokens")), -1)[:, skipped:]
        got = answer.as_numpy("token_ids")
        assert np.array_equal(got, rows[:, :got.shape[1]])
        assert (rows[:, got.shape[1]:] == 1).all()
        scores = expected.get(f"sequences_scores.{run['run']}.{run['item']}")
        if scores is not None:
            assert np.allclose(answer.as_numpy("scores"), scores, rtol=1e-4, atol=1e-4)

    def test_global_tokens_by_their_strings(self, led):
        text = TEXTS[0]
        body = {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES",
                            "data": [text["text"]]}],
                "parameters": {"global_tokens": '["<s>"]'}}
        status, answer = led.post_json("/v2/models/summary/infer", body)
        assert status == 200, answer
        outputs = {output["name"]: output["data"] for output in answer["outputs"]}
        assert outputs["text"] == [text["output_text"]]
        assert outputs["token_ids"] == text["output_ids"][1:]

    def test_logits_of_a_given_output_and_states(self, triton):
        answer = infer_ids(triton, 0, {"max_tokens": 0}, [2, 30, 31],
                           ["logits", "encoder_last_hidden_state"])
        assert answer.as_numpy("logits").shape == (1, 3, 300)
        assert answer.as_numpy("encoder_last_hidden_state").shape == (1, 40, 32)

    def test_metadata_says_the_task(self, led):
        facts = json.loads(led.get("/v2/models/summary")[2])
        assert facts["properties"]["task"] == "text2text-generation"
        assert facts["properties"]["family"] == "led"
        names = {tensor["name"] for tensor in facts["inputs"]}
        assert {"text", "input_ids", "global_attention_mask", "decoder_input_ids"} <= names


class TestBadInput:
    @pytest.mark.parametrize("body, said", [
        ({"prompt": "x", "echo": True}, "echo"),
        ({"prompt": "x", "max_tokens": 65}, "max_tokens"),
        ({"prompt": [5, 700]}, "700"),
        ({"prompt": "word " * 600}, "512"),
    ])
    def test_completions(self, led, body, said):
        status, answer = led.post_json("/v1/completions", {"model": "summary", **body})
        assert status == 400 and said in answer["error"]["message"], answer

    def test_documents_are_for_causal_models(self, led):
        done = subprocess.run(["grpcurl", "-plaintext", "-d", '{"model": "summary", "text": "x"}',
                               led.grpc, "longview.v1.TextService/OpenDocument"],
                              capture_output=True, text=True, timeout=60)
        assert "Unimplemented" in done.stderr

    def test_starts_of_outputs(self, led):
        body = {"inputs": [
            {"name": "input_ids", "shape": [1, 2], "datatype": "INT64", "data": [0, 2]},
            {"name": "decoder_input_ids", "shape": [1, 70], "datatype": "INT64",
             "data": [5] * 70}]}
        status, answer = led.post_json("/v2/models/ids/infer", body)
        assert status == 400 and "decoder_input_ids" in answer["error"], answer
