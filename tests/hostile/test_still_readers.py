"""Readers that ask for much and take nothing: streams, large answers, on both transports."""

import json
import time

from http1 import connect, head
from http2 import Http2, message
from victim import MOST_BYTES, SHORT_MESSAGE

UNLOAD_SECONDS = 60
# GenerateRequest: model = 1, text = 3, max_tokens = 9 (20,000).
GENERATE = b"\x0a\x07code-lm\x1a\x04def \x48\xa0\x9c\x01"


def stream_body():
    return json.dumps({"model": "code-lm", "prompt": "def ", "max_tokens": 20000, "stream": True,
                       "logprobs": 20, "ignore_eos": True}).encode()


def unloads(victim):
    """The seconds that it takes; the victim does not serve it any more."""
    start = time.monotonic()
    status, _, answer = victim.post("/v2/repository/models/code-lm/unload", b"{}",
                                    timeout=UNLOAD_SECONDS)
    assert status == 200, answer
    return round(time.monotonic() - start, 2)


def test_server_sent_events_that_nobody_reads(victim):
    with victim.watched() as figures:
        readers = []
        for _ in range(20):
            raw = connect(victim.http_port, receive_buffer=4096)
            body = stream_body()
            raw.sendall(head("POST", "/v1/completions", Content_Length=len(body)) + body)
            readers.append(raw)
        time.sleep(5)
        figures["unload_s"] = unloads(victim)
        for raw in readers:
            raw.close()
    victim.spoiled = True


def test_grpc_streams_that_nobody_reads(victim):
    """Ten streams without a window, ten with a small one, which wait for their end together. Each half
    may take half of the memory: a stream has as much as if all twenty were of its kind."""
    with victim.watched(most_bytes=MOST_BYTES // 2) as figures:
        readers = []
        for window in (0, 100):
            reader = Http2(victim.grpc_port, window=window).await_settings()
            for i in range(10):
                reader.call(2 * i + 1, "/longview.v1.TextService/Generate")
                reader.data(2 * i + 1, message(GENERATE), end=True)
            readers.append(reader)
        time.sleep(5)
        figures["unload_s"] = unloads(victim)
        for reader in readers:
            reader.close()
    victim.spoiled = True


def test_answers_that_nobody_reads(victim):
    """Pipelined requests for large pages, and unary answers without a window."""
    with victim.watched() as figures:
        raw = connect(victim.http_port, receive_buffer=4096, timeout=1)
        sent = 0
        try:
            for _ in range(20_000):
                raw.sendall(head("GET", "/openapi.json"))
                sent += 1
        except OSError:
            pass
        reader = Http2(victim.grpc_port, window=0).await_settings()
        for i in range(500):
            reader.call(2 * i + 1, "/longview.v1.TextService/Classify")
            reader.data(2 * i + 1, message(SHORT_MESSAGE), end=True, seconds=1)
        figures["pipelined"] = sent
        time.sleep(2)
        raw.close()
        reader.close()
