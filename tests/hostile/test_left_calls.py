"""Calls whose client has gone: they count for nothing any more 20 ms later."""

import json
import time

import pytest

from http1 import connect, head
from http2 import Http2, message

LINE = "value = compute(left, right)\n"
CALLS = 6


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def over_http(victim, prompt):
    body = json.dumps({"model": "code-lm", "prompt": prompt, "max_tokens": 1}).encode()
    raw = connect(victim.http_port, source="127.0.0.1")
    raw.sendall(head("POST", "/v1/completions", Content_Length=len(body),
                     Content_Type="application/json") + body)
    return raw.close


def over_grpc(victim, prompt):
    caller = Http2(victim.grpc_port, source="127.0.0.1").await_settings()
    caller.call(1, "/longview.v1.TextService/Generate")
    text = prompt.encode()
    caller.data(1, message(b"\x0a\x07code-lm\x1a" + varint(len(text)) + text + b"\x48\x01"),
                end=True)
    return caller.close


def running(victim):
    return victim.metric("longview_running_requests", model="code-lm")


@pytest.mark.slow
@pytest.mark.serves("code-lm", flags=("--threads=1",))
@pytest.mark.parametrize("begin", [over_http, over_grpc])
def test_a_call_that_was_left_keeps_nobody_waiting(victim, begin):
    # One client: what it left would be in front of its next call.
    body = {"model": "code-lm", "prompt": "x", "max_tokens": 1}
    for _ in range(5):
        assert victim.post_json("/v1/completions", body)[0] == 200
    answered = []
    for i in range(CALLS):
        leave = begin(victim, f"# {begin.__name__} {i}\n" + LINE * 4_000)
        give_up = time.monotonic() + 20
        while running(victim) == 0:
            assert time.monotonic() < give_up
        leave()
        time.sleep(0.02)
        answered.append(victim.post_json(
            "/v1/completions", body, headers={"X-Envoy-Expected-Rq-Timeout-Ms": "200"})[0])
    print(answered)
    assert answered.count(200) >= CALLS - 1, answered
