"""A long prompt that is echoed with its log-probabilities in front of many sequences."""

import json

import pytest

from http1 import connect, head, post

LINE = "value = compute(a, b)\n"
LINES = [2_000, pytest.param(11_000, marks=pytest.mark.slow)]  # 0.04 MB; 0.24 MB.
SEQUENCES = 32


def request(lines, stream):
    return json.dumps({"model": "code-lm", "prompt": LINE * lines, "echo": True, "logprobs": 20, "n": SEQUENCES,
                       "max_tokens": 1, "temperature": 0.9, "stream": stream, "truncate": True}).encode()


@pytest.mark.parametrize("lines", LINES)
def test_a_whole_answer_is_bounded_before_it_is_written(victim, lines):
    with victim.watched() as figures:
        status, answer = post(victim.http_port, "/v1/completions", request(lines, False), timeout=400)
        figures.update(answer=status, answer_MB=round(len(answer) / 1e6, 1))
        assert status in (200, 400, 429), answer[:300]
        if status != 200:
            assert b"bytes" in answer, answer[:300]


def events(port, lines):
    """The lines of a stream; a line of tens of megabytes is not kept."""
    raw = connect(port, timeout=400)
    body = request(lines, True)
    raw.sendall(head("POST", "/v1/completions", Connection="close", Content_Length=len(body)) + body)
    with raw.makefile("rb") as answer:
        status = int(answer.readline().split()[1])
        while answer.readline().strip():
            pass
        rest = answer.read() if status != 200 else b""
        echoes, last, size = 0, b"", 0
        while status == 200 and (size := int(answer.readline().strip() or b"0", 16)):
            while size:
                part = answer.read(min(size, 1 << 16))
                size -= len(part)
                echoes += part.count(b'{"tokens":[')
                last = (last + part)[-300:]
            answer.readline()
    return status, echoes, last, rest


@pytest.mark.parametrize("lines", LINES)
def test_a_stream_holds_one_prompt_for_all_sequences(victim, lines):
    with victim.watched() as figures:
        status, echoes, last, rest = events(victim.http_port, lines)
        figures.update(answer=status, events=echoes)
        if status != 200:
            assert status in (400, 429), rest[:300]
            return
        # The end is told: all there is, or an error; never an end with something missing.
        assert last.rstrip().endswith(b"data: [DONE]") and echoes >= SEQUENCES or b'"error"' in last, last
