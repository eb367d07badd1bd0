"""The autoregressive Composite Slice fixtures through the running server: greedy continuations by
typed calls and tensors, logits of whole prompts, what the position tables do not reach."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from goldens import assert_close, case_facts, expected, items, tensors
from server_process import GOLDEN, Server

CASES = sorted(path for path in (GOLDEN / "cst").glob("ar_*"))
LISTED = [case for case in CASES if case.name != "ar_long"]  # It expects some positions only.


WORDS = ["[PAD]", *(f"w{i}" for i in range(1, 40))]


def with_words(case, directory):
    """The case's model with a tokenizer whose token i is the word wi."""
    shutil.copytree(case / "model", directory)
    model = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)},
             "unk_token": "w1"}
    (directory / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None,
        "decoder": None, "model": model}))
    (directory / "tokenizer_config.json").write_text('{"unk_token": "w1"}')
    return directory


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    models = ",".join(f"{case.name}={case / 'model'}" for case in CASES)
    worded = with_words(GOLDEN / "cst/ar_L4_alpha3", tmp_path_factory.mktemp("cst") / "words")
    models += f",words={worded}"
    with Server([models], "--dtype=fp32", "--cache_bytes=64MiB") as server:
        yield server


def infer(server, model, ids, outputs, **parameters):
    inputs = [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(ids)], "data": ids}]
    status, answer = server.post_json(f"/v2/models/{model}/infer", {
        "inputs": inputs, "outputs": [{"name": name} for name in outputs],
        "parameters": parameters})
    assert status == 200, answer
    return {output["name"]: np.array(output["data"]).reshape(output["shape"])
            for output in answer["outputs"]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_greedy(lm, case):
    inputs = tensors(case / "inputs.safetensors")
    outputs = tensors(case / "expected.safetensors")
    for index, ids in items(inputs, "input_ids").items():
        if f"greedy.tokens.{index}" not in outputs:
            continue
        wanted = outputs[f"greedy.tokens.{index}"].tolist()
        got = infer(lm, case.name, ids.tolist(), ["token_ids"], max_tokens=len(wanted),
                    ignore_eos=True)
        assert got["token_ids"][0].tolist() == wanted
        typed = subprocess.run(
            ["grpcurl", "-plaintext", "-d",
             json.dumps({"model": case.name, "token_ids": ids.tolist(), "temperature": 0,
                         "max_tokens": len(wanted), "collect": True}),
             lm.grpc, "longview.v1.TextService/Generate"], capture_output=True, text=True, timeout=60)
        assert typed.returncode == 0, typed.stderr
        assert json.loads(typed.stdout)["token_ids"] == wanted


@pytest.mark.parametrize("case", LISTED, ids=lambda case: case.name)
def test_logits_of_prompts(lm, case):
    inputs = tensors(case / "inputs.safetensors")
    outputs = tensors(case / "expected.safetensors")
    key = "logprobs" if "logprobs.0" in outputs else "logits"
    tolerance = case_facts(case)["tolerance"][key]
    for index, ids in items(inputs, "input_ids").items():
        got = infer(lm, case.name, ids.tolist(), ["logits"], max_tokens=0)
        assert_close(got["logits"][0], expected(outputs, f"{key}.{index}"), tolerance, case.name)


def test_positions_end(lm):
    body = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 41],
                        "data": [1] * 41}]}
    status, answer = lm.post_json("/v2/models/ar_L4_alpha3/infer", body)
    assert status == 400 and "40" in answer["error"]


def test_texts_are_read_and_written_by_the_tokenizer(lm):
    """A prompt of words continues as its ids do, whole and streamed."""
    ids = [7, 3, 21, 5, 5, 30]
    prompt = " ".join(WORDS[i] for i in ids)
    wanted = infer(lm, "ar_L4_alpha3", ids, ["token_ids"], max_tokens=8, ignore_eos=True)
    words = [WORDS[i] for i in wanted["token_ids"][0]]
    body = {"model": "words", "prompt": prompt, "max_tokens": 8, "temperature": 0}
    status, answer = lm.post_json("/v1/completions", body)
    assert status == 200, answer
    choice = answer["choices"][0]
    assert choice["text"] == "".join(words)  # Without a decoder, tokens stand side by side.
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["prompt_tokens"] == len(ids)
    status, _, events = lm.post("/v1/completions", {**body, "stream": True})
    assert status == 200
    pieces = [json.loads(line[6:]) for line in events.decode().splitlines()
              if line.startswith("data: {")]
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == choice["text"]
    status, answer = lm.post_json("/v1/completions", {**body, "prompt": "w1 " * 41})
    assert status == 400 and "40" in answer["error"]["message"]
