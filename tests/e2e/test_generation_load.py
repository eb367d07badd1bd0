"""Generation under load: a very long prompt beside a stream, many that leave, many that dawdle."""

import concurrent.futures
import json
import socket
import struct
import threading
import time

import openai
import pytest

from server_process import GOLDEN, Server, wait_until

CASE = GOLDEN / "transformer_ls_lm/paper_dh32_r2_l16_w64"  # Bytes as tokens.
PROMPT = "The ferry left at six, before the fog"
LONG = "".join(f"{i} ferries, {i * i % 97} gulls;\n" for i in range(6000))[:100_000]


@pytest.fixture(scope="module")
def lm():
    with Server([f"lm={CASE / 'model'}"], "--dtype=fp32", "--cache_bytes=256MiB") as server:
        yield server


def client(server):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def stream(server, **options):
    return client(server).completions.create(
        model="lm", stream=True, **{"prompt": PROMPT, "temperature": 0, "max_tokens": 40, **options})


def running(server):
    return server.metric("longview_running_requests", model="lm")


def nothing_runs(server):
    wait_until(lambda: running(server) == 0, 60, "an idle server")


def test_a_long_prompt_beside_a_stream(lm):
    """Its tokens are read between the other's; its state is what was reserved, no more."""
    status, estimate = lm.post_json("/v1/estimate", {"model": "lm", "text": LONG, "max_tokens": 8})
    assert status == 200 and estimate["usage"]["input_tokens"] == len(LONG) + 1
    for piece in stream(lm):
        assert piece
    nothing_runs(lm)
    resident = lm.resident_bytes()
    reading, arrived, ended = threading.Event(), [], threading.Event()

    def listen():
        with stream(lm, max_tokens=100_000) as pieces:  # Hangs up at its end.
            for _ in pieces:
                if reading.is_set():
                    arrived.append(1)
                if ended.is_set():
                    break

    other = threading.Thread(target=listen)
    other.start()
    wait_until(lambda: running(lm) == 1, what="the other stream")
    peak, watching = [], threading.Event()

    def watch():
        while not watching.is_set():
            peak.append((lm.metric("longview_generation_cache_bytes", model="lm"),
                         lm.resident_bytes()))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    reading.set()
    start = time.monotonic()
    answer = client(lm).completions.create(model="lm", prompt=LONG, max_tokens=8, temperature=0)
    during, elapsed = len(arrived), time.monotonic() - start
    watching.set()
    ended.set()
    watcher.join()
    other.join()
    assert answer.usage.prompt_tokens == len(LONG) + 1
    # A prompt of 100,000 tokens takes many steps of at most the ceiling of 0.1 s each; each of them
    # carried the other's token.
    assert during > elapsed / 0.2, elapsed
    states, memory = zip(*peak)
    assert max(states) >= estimate["state_bytes"]
    status, both = lm.post_json("/v1/estimate",
                                {"model": "lm", "text": PROMPT, "max_tokens": 100_000})
    assert max(states) <= estimate["state_bytes"] + both["state_bytes"]
    assert max(memory) <= resident + 2 * max(states) + (96 << 20)
    nothing_runs(lm)


@pytest.mark.parametrize("calls", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_leaving_in_mid_stream(lm, calls):
    """Streams cut off after their first piece leave no sequence and no memory behind."""
    def leave(_):
        cut = stream(lm, max_tokens=50_000)
        next(iter(cut))
        cut.close()

    def round_of(count):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(leave, range(count)))
        nothing_runs(lm)
        return lm.metric("longview_generation_cache_bytes", model="lm")

    states, resident = round_of(50), lm.resident_bytes()
    assert round_of(calls) <= states
    lm.settles_below(resident + (48 << 20))


def test_readers_that_dawdle_or_vanish(lm):
    """200 connections: a third never reads, a third reads a byte at a time, a third resets."""
    body = json.dumps({"model": "lm", "prompt": PROMPT, "max_tokens": 300, "stream": True})
    request = (f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
               f"{body}").encode()
    readers = []
    for _ in range(200):
        reader = socket.create_connection(("127.0.0.1", lm.http_port))
        reader.sendall(request)
        readers.append(reader)
    for at, reader in enumerate(readers):
        if at % 3 == 1:
            for _ in range(20):
                assert reader.recv(1)
        elif at % 3 == 2:
            assert reader.recv(1)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            reader.close()
    whole = client(lm).completions.create(model="lm", prompt=PROMPT, max_tokens=5, temperature=0)
    assert whole.choices[0].finish_reason == "length"
    resident = lm.resident_bytes()
    for reader in readers:
        reader.close()
    nothing_runs(lm)
    lm.settles_below(resident + (64 << 20))
