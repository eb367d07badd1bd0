"""What each text family cannot read, asked for over both transports: the same refusal, naming the
field, the value and the limit."""

import json
import subprocess

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from server_process import GOLDEN, Server

MODELS = {
    "ls": "transformer_ls_text/interior_mask",
    "ls-pairs": "transformer_ls_text/retrieval_pair_w8_r32",
    "luna": "luna/lra_text_cls", "luna-pairs": "luna/lra_match_cls", "luna-masks": "luna/mlm_tied",
    "luna-p": "luna/lra_use_p", "luna-lm": "luna/causal_tied", "luna-mt": "luna/mt_tied",
    "cst": "cst/lra_L8", "cst-pairs": "cst/lra_retrieval_nli", "cst-masks": "cst/mlm_alpha3",
    "cst-pooler": "cst/glue_pooler", "cst-lm": "cst/ar_L4_alpha3",
    "led": "led/generate", "summary": "led/text_summarize",
}


@pytest.fixture(scope="module")
def families():
    models = ",".join(f"{name}={GOLDEN / case / 'model'}" for name, case in MODELS.items())
    with Server([models], "--dtype=fp32", "--cache_bytes=64MiB") as server:
        yield server


def ids(*rows, name="input_ids"):
    return {name: np.array(rows or [[5, 6, 7]], np.int64)}


def tokens(count, name="input_ids"):
    return ids([5] * count, name=name)


def mask(*values, name="attention_mask"):
    return ids(values, name=name)


def text(value, name="text"):
    return {name: np.array([value.encode()], dtype=object)}


# model, tensors, parameters, what the message must have.
TENSORS = [
    ("ls", tokens(65), {}, ["input_ids", "65", "64"]),
    ("ls", ids([3, 40]), {}, ["input_ids", "40", "[0, 40)"]),
    ("ls", ids([0, 0]), {}, ["masked"]),
    ("ls", {**ids(), **mask(0, 1, 0, name="global_attention_mask")}, {}, ["global_attention_mask"]),
    ("ls", {**ids(), **mask(0, 0, 0, name="token_type_ids")}, {}, ["token_type_ids"]),
    ("ls", {**ids(), **tokens(2, "input_ids_pair")}, {}, ["input_ids_pair"]),
    ("ls", text("x"), {}, ["text", "token"]),
    ("ls-pairs", ids(), {}, ["input_ids_pair"]),
    ("ls-pairs", {**ids(), **ids([5, 257], name="input_ids_pair")}, {}, ["input_ids_pair", "257"]),
    ("ls-pairs", {**ids(), **tokens(129, "input_ids_pair")}, {}, ["input_ids_pair", "129", "128"]),
    ("luna", tokens(65), {}, ["input_ids", "65", "64"]),
    ("luna", ids([5, 25]), {}, ["input_ids", "25", "[0, 25)"]),
    ("luna", ids([1, 5]), {}, ["input_ids", "masked"]),
    ("luna", {**ids(), **mask(1, 0, 0, name="global_attention_mask")}, {},
     ["global_attention_mask"]),
    ("luna-p", ids([5]), {}, ["input_ids", "class token"]),
    ("luna-pairs", text("t1"), {}, ["text_pair"]),
    ("luna-masks", text("no mask"), {}, ["text", "mask"]),
    ("luna-masks", text("0 <mask>"), {"top_k": -1}, ["top_k", "-1"]),
    ("cst", tokens(65), {}, ["input_ids", "65", "64"]),
    ("cst", ids([3, 40]), {}, ["input_ids", "40", "[0, 40)"]),
    ("cst", {**ids(), **mask(0, 1, 1)}, {}, ["position 0", "masked"]),
    ("cst", {**ids(), **mask(1, 2, 1)}, {}, ["attention_mask", "2"]),
    ("cst", {**ids(), **mask(1, 1)}, {}, ["attention_mask"]),
    ("cst", {**ids(), **mask(0, 0, 0, name="token_type_ids")}, {}, ["token_type_ids"]),
    ("cst-pooler", {**ids(), **mask(0, 2, 0, name="token_type_ids")}, {}, ["token_type_ids", "2"]),
    ("cst-pairs", ids(), {}, ["input_ids_pair"]),
    ("cst-masks", {**ids(), **mask(0, 1, 0, name="global_attention_mask")}, {},
     ["global_attention_mask"]),
    ("cst-lm", tokens(41), {}, ["41", "40"]),
    ("cst-lm", ids(), {"max_tokens": 38}, ["max_new_tokens: 38", "40", "37"]),
    ("cst-lm", ids(), {"temperature": -1}, ["temperature", "-1"]),
    ("cst-lm", ids(), {"top_p": 2}, ["top_p", "2"]),
    ("cst-lm", {**ids(), **tokens(2, "decoder_input_ids")}, {}, ["decoder_input_ids"]),
    ("luna-lm", ids(), {"max_len_a": 1}, ["max_len_a"]),
    ("luna-lm", ids(), {"num_beams": 0}, ["num_beams", "0"]),
    ("luna-mt", ids(), {"max_len_a": -1}, ["max_len_a", "-1"]),
    ("luna-mt", ids(), {"max_len_b": "many"}, ["max_len_b", "many"]),
    ("luna-mt", ids(), {"num_beams": 2, "num_return_sequences": 3},
     ["num_return_sequences", "3", "2"]),
    ("luna-mt", ids([5, 9999]), {}, ["input_ids", "9999"]),
    ("luna-mt", {**ids(), **ids([9999], name="decoder_input_ids")}, {},
     ["decoder_input_ids", "9999"]),
    ("led", ids([5, 300]), {}, ["input_ids", "300"]),
    ("led", {**ids(), **mask(0, 2, 0, name="global_attention_mask")}, {},
     ["global_attention_mask", "2"]),
    ("led", {**ids(), **mask(0, 1, 1)}, {}, ["masked"]),
    ("led", {**ids(), **tokens(70, "decoder_input_ids")}, {}, ["decoder_input_ids", "71", "64"]),
    ("led", ids(), {"num_beams": 2, "num_return_sequences": 3}, ["num_return_sequences", "3", "2"]),
    ("led", ids(), {"early_stopping": "sometimes"}, ["early_stopping", "sometimes"]),
    ("led", ids(), {"no_repeat_ngram_size": -1}, ["no_repeat_ngram_size", "-1"]),
    ("led", ids(), {"forced_bos_token_id": 300}, ["forced_bos_token_id", "300"]),
    ("led", ids(), {"suppress_tokens": "[1"}, ["suppress_tokens", "[1"]),
    ("led", ids(), {"repetition_penalty": 0}, ["repetition_penalty", "0"]),
    ("led", ids(), {"length_penalty": "long"}, ["length_penalty", "long"]),
]


def name_of(value):
    return value if isinstance(value, str) else None


def by_http(server, model, tensors, parameters):
    inputs = [{"name": name, "shape": list(array.shape),
               "datatype": "BYTES" if array.dtype == object else "INT64",
               "data": [v.decode() if isinstance(v, bytes) else int(v) for v in array.ravel()]}
              for name, array in tensors.items()]
    status, answer = server.post_json(f"/v2/models/{model}/infer",
                                      {"inputs": inputs, "parameters": parameters})
    assert status == 400, answer
    return answer["error"]


def by_grpc(server, model, tensors, parameters):
    inputs = []
    for name, array in tensors.items():
        kind = "BYTES" if array.dtype == object else "INT64"
        inputs.append(tritonclient.grpc.InferInput(name, list(array.shape), kind))
        inputs[-1].set_data_from_numpy(array)
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as refused:
            client.infer(model, inputs, parameters=parameters)
    assert refused.value.status() == "StatusCode.INVALID_ARGUMENT", refused.value
    return refused.value.message()


@pytest.mark.parametrize("model, tensors, parameters, parts", TENSORS, ids=name_of)
def test_tensors(families, model, tensors, parameters, parts):
    message = by_http(families, model, tensors, parameters)
    for part in parts:
        assert part in message
    assert by_grpc(families, model, tensors, parameters) == message


# path on HTTP, method of TextService, request, what the message must have.
TYPED = [
    ("classify", "Classify", {"model": "cst", "token_ids": [1, 2], "token_ids_pair": [3]},
     ["token_ids_pair"]),
    ("classify", "Classify", {"model": "cst", "text": "x"}, ["text", "token"]),
    ("classify", "Classify", {"model": "cst", "token_ids": [1], "global_positions": [0]},
     ["global_positions"]),
    ("classify", "Classify", {"model": "ls-pairs", "text": "x"}, ["text_pair"]),
    ("classify", "Classify", {"model": "ls-pairs", "text": "x", "text_pair": "y" * 129},
     ["text_pair", "129", "128"]),
    ("classify", "Classify", {"model": "luna", "token_ids": [5], "top_k": -1}, ["top_k", "-1"]),
    ("classify", "Classify", {"model": "luna-pairs", "token_ids": [24, 5, 2]}, ["token_ids_pair"]),
    ("fill-mask", "FillMask", {"model": "luna-masks", "text": "0 1"}, ["text", "mask"]),
    ("fill-mask", "FillMask", {"model": "cst-masks", "token_ids": [1], "top_k": -1},
     ["top_k", "-1"]),
]
# Methods with another form on HTTP.
GRPC = [
    ("Embed", {"model": "cst", "token_ids": [1], "pooling": "cls"}, ["pooling", "cls"]),
    ("Embed", {"model": "cst", "token_ids": [1], "pooling": "pooler"}, ["pooling", "pooler"]),
    ("Embed", {"model": "ls", "token_ids": [1], "pooling": "median"}, ["pooling", "median"]),
    ("Generate", {"model": "cst-lm", "token_ids": [1], "global_positions": [0]},
     ["global_positions"]),
    ("Generate", {"model": "cst-lm", "token_ids": [1], "max_tokens": 40}, ["max_tokens: 40", "39"]),
    ("Generate", {"model": "luna-lm", "token_ids": [5], "top_k": -1}, ["top_k", "-1"]),
    ("Generate", {"model": "luna-mt", "token_ids": [5], "echo": True}, ["echo"]),
    ("Generate", {"model": "summary", "text": "x", "global_positions": [512]},
     ["global_positions", "512"]),
    ("Generate", {"model": "summary", "text": "x", "num_beams": 1, "n": 2}, ["n: 2"]),
    ("Generate", {"model": "summary", "text": "x", "max_tokens": 65}, ["max_tokens", "65"]),
]


def typed_over_grpc(server, method, request):
    done = subprocess.run(["grpcurl", "-plaintext", "-d", json.dumps(request), server.grpc,
                           f"longview.v1.TextService/{method}"],
                          capture_output=True, text=True, timeout=60)
    assert "Code: InvalidArgument" in done.stderr, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("path, method, request_, parts", TYPED, ids=name_of)
def test_typed(families, path, method, request_, parts):
    status, answer = families.post_json(f"/v1/{path}", request_)
    assert status == 400, answer
    message = answer["error"]["message"]
    for part in parts:
        assert part in message
    assert message in typed_over_grpc(families, method, request_)


@pytest.mark.parametrize("method, request_, parts", GRPC, ids=name_of)
def test_typed_over_grpc_alone(families, method, request_, parts):
    said = typed_over_grpc(families, method, request_)
    for part in parts:
        assert part in said
