"""Many sequences of many tokens, each told with twenty others it might have been."""

import json

import pytest

from http1 import connect, head, post


def request(stream, sequences=32, tokens=20_000):
    return json.dumps({"model": "code-lm", "prompt": "def main():", "logprobs": 20, "n": sequences,
                       "max_tokens": tokens, "temperature": 1, "seed": 1, "stream": stream}).encode()


@pytest.mark.slow
def test_a_whole_answer_is_ended_before_it_has_grown_too_large(victim):
    with victim.watched() as figures:
        status, answer = post(victim.http_port, "/v1/completions", request(False), timeout=400)
        figures.update(answer=status, answer_MB=round(len(answer) / 1e6, 1))
        assert status in (400, 429) and b"bytes" in answer, answer[:300]


@pytest.mark.slow
def test_a_stream_is_ended_with_an_error(victim):
    with victim.watched() as figures:
        raw = connect(victim.http_port, timeout=400)
        body = request(True)
        raw.sendall(head("POST", "/v1/completions", Connection="close", Content_Length=len(body)) + body)
        last, size = b"", 0
        with raw.makefile("rb") as answer:
            while part := answer.read1(1 << 16):
                last, size = (last + part)[-600:], size + len(part)
        figures.update(answer_MB=round(size / 1e6, 1))
        assert b'"error"' in last and b"bytes" in last, last
