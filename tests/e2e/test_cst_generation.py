"""The autoregressive Composite Slice fixtures through the running server: greedy continuations by
typed calls and tensors, logits of whole prompts, what the position tables do not reach."""

import json
import subprocess

import numpy as np
import pytest

from goldens import assert_close, case_facts, expected, items, tensors
from server_process import GOLDEN, Server

CASES = sorted(path for path in (GOLDEN / "cst").glob("ar_*"))
LISTED = [case for case in CASES if case.name != "ar_long"]  # It expects some positions only.


@pytest.fixture(scope="module")
def lm():
    models = ",".join(f"{case.name}={case / 'model'}" for case in CASES)
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
