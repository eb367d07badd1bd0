"""10,000 clients that go away in the middle of whatever they were doing."""

import concurrent.futures
import json
import os
import random
import socket
import struct

from neighbours import DOCUMENTS, Neighbours, models, record
from server_process import Server, wait_until

CLIENTS = 10_000
H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")


def http_request(path, body):
    text = json.dumps(body)
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n{text}").encode()


INFER = http_request("/v2/models/classifier/infer", {"inputs": [
    {"name": "input_ids", "datatype": "INT64", "shape": [1, 200], "data": DOCUMENTS[2]}]})
STREAM = http_request("/v1/completions", {"model": "code-lm", "prompt": "x", "max_tokens": 500,
                                          "stream": True})


def vanish(server, seed):
    """One client: connects, says some of what it has to say, listens or not, closes or resets."""
    rng = random.Random(seed)
    try:
        grpc = rng.random() < 0.2
        port = server.grpc_port if grpc else server.http_port
        client = socket.create_connection(("127.0.0.1", port), timeout=30)
        said = H2_PREFACE if grpc else rng.choice([INFER, STREAM])
        if rng.random() < 0.5:
            said = said[:rng.randrange(len(said))]
        client.sendall(said)
        if rng.random() < 0.2 and said in (INFER, STREAM):
            client.recv(1)
        if rng.random() < 0.5:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    except OSError:
        pass  # A server that sheds connections may.


def test_ten_thousand_vanish():
    # However slow the machine, nobody is refused for what those who vanished have waiting.
    with Server(models(), "--cache_bytes=256MiB", "--max_queue_seconds=3600") as server:
        recorded = record(server)
        count = lambda: len(os.listdir(f"/proc/{server.process.pid}/fd"))  # noqa: E731
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            list(pool.map(lambda seed: vanish(server, seed), range(1000)))  # Pools reach their size.
            idle, resident = count(), server.resident_bytes()
            with Neighbours(server, recorded) as neighbours:
                list(pool.map(lambda seed: vanish(server, seed), range(1000, CLIENTS)))
                neighbours.wait_for(6)
        wait_until(lambda: server.metric("longview_running_requests") == 0, 60, "an idle server")
        wait_until(lambda: count() <= idle + 8, 90, "descriptors given back")
        server.settles_below(resident + (64 << 20))
        assert record(server) == recorded
