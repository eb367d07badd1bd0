"""One long member of a request with many items, which must not be copied into each."""

import concurrent.futures
import json

import pytest

from http1 import post

LONG = "x" * 10_000_000
ITEMS = 1000


def tensor_request(**parameters):
    return {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [ITEMS],
                        "data": ["x"] * ITEMS}], "parameters": parameters}


REQUESTS = {
    "stop": ("/v1/completions", lambda: {"model": "code-lm", "prompt": ["x"] * ITEMS,
                                         "stop": [LONG], "max_tokens": 1}),
    "model": ("/v1/completions", lambda: {"model": LONG, "prompt": ["x"] * ITEMS}),
    "model of embeddings": ("/v1/embeddings", lambda: {"model": LONG, "input": ["x"] * ITEMS}),
    "pooling": ("/v1/embeddings", lambda: {"model": "code-language", "input": ["x"] * ITEMS,
                                           "pooling": LONG}),
    "logit_bias": ("/v1/completions", lambda: {
        "model": "code-lm", "prompt": ["x"] * ITEMS, "max_tokens": 1,
        "logit_bias": {str(token): 1.5 for token in range(70_000)}}),
    "prompt of embeddings": ("/v1/embeddings", lambda: {
        "model": "code-language", "input": ["x"] * 2048, "prompt": "x" * (64 << 10)}),
    "user": ("/v1/completions", lambda: {"model": "code-lm", "prompt": ["x"] * ITEMS,
                                         "user": LONG, "max_tokens": 1}),
    "stop of tensors": ("/v2/models/code-lm/infer", lambda: tensor_request(
        stop=json.dumps([LONG]), max_tokens=1)),
    "pooling of tensors": ("/v2/models/code-language/infer", lambda: tensor_request(
        pooling=LONG)),
    "global tokens": ("/v2/models/code-language/infer", lambda: tensor_request(
        global_tokens=json.dumps([LONG]))),
    "id": ("/v2/models/code-language/infer", lambda: {**tensor_request(), "id": LONG}),
}


QUICK = ("stop", "logit_bias", "prompt of embeddings", "pooling", "global tokens", "id")
CASES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in REQUESTS]


@pytest.mark.parametrize("name", CASES)
def test_long_members(victim, name):
    path, request = REQUESTS[name]
    body = json.dumps(request()).encode()
    with victim.watched() as figures:
        status, answer = post(victim.http_port, path, body)
        figures["answer"] = status
        assert status != 0
        assert status == 200 or len(answer) < 2000


def test_a_prompt_of_many_inputs_from_many_connections(victim):
    """64 KiB in front of each of 2,048 inputs, sixteen times at once: refused, and the refusal says why."""
    body = json.dumps(REQUESTS["prompt of embeddings"][1]()).encode()
    with victim.watched() as figures, concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: post(victim.http_port, "/v1/embeddings", body), range(16)))
        figures["answers"] = sorted({status for status, _ in answers})
    for status, answer in answers:
        assert status == 400, answer
        message = json.loads(answer)["error"]["message"]
        for said in ("prompt 655", "2048 items", str(16 << 20)):
            assert said in message, message


def test_a_long_member_of_a_message(victim):
    """GenerateRequest: stop = 15, n = 16; six megabytes for each of a hundred sequences."""
    import grpc
    stop = b"\x7a" + bytes([0x80, 0x9b, 0xee, 0x02]) + b"x" * 6_000_000
    request = b"\x0a\x07code-lm\x1a\x04def \x48\x01" + stop + b"\x80\x01\x64"
    with victim.watched() as figures, victim.channel() as channel:
        try:
            figures["answer"] = len(list(channel.unary_stream(
                "/longview.v1.TextService/Generate")(request, timeout=60)))
        except grpc.RpcError as error:
            figures["answer"] = error.code().name
