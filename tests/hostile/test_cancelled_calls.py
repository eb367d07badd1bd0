"""Calls begun and left at once, again and again."""

import json

import pytest

from http1 import connect, head
from http2 import Http2, message

# GenerateRequest: model = 1, text = 3, max_tokens = 9 (1,000).
GENERATE = b"\x0a\x07code-lm\x1a\x04def \x48\xe8\x07"


def over_grpc(victim, calls):
    attacker = None
    for i in range(calls):
        if i % 500 == 0:
            if attacker:
                attacker.close()
            attacker = Http2(victim.grpc_port).await_settings()
        stream = 2 * (i % 500) + 1
        attacker.call(stream, "/longview.v1.TextService/Generate")
        attacker.data(stream, message(GENERATE), end=True, seconds=1)
        attacker.reset(stream)
    attacker.close()


def over_http(victim, calls):
    body = json.dumps({"model": "code-lm", "prompt": "def ", "max_tokens": 1000,
                       "stream": True}).encode()
    for _ in range(calls):
        raw = connect(victim.http_port)
        raw.sendall(head("POST", "/v1/completions", Content_Length=len(body)) + body)
        raw.close()


@pytest.mark.parametrize("transport", [over_grpc, over_http])
def test_cancelled_calls(victim, transport):
    with victim.watched():
        transport(victim, 2000)
    victim.settles_below(victim.resident_bytes() + (100 << 20))


@pytest.mark.slow
@pytest.mark.parametrize("transport", [over_grpc, over_http])
def test_many_cancelled_calls(victim, transport):
    with victim.watched():
        transport(victim, 50_000)
