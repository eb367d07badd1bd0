"""The calls of a soak's clients: a fixed set whose answers are recorded first, so that
every later answer can be compared with them bit by bit."""

import json
import pathlib
import random
import socket
import struct
import sys
import urllib.error
import urllib.request
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import over_grpc  # noqa: E402
from goldens import served_models  # noqa: E402
from server_process import ZOO  # noqa: E402

KEYS = {"ada": "soak-key-of-ada-0001", "bob": "soak-key-of-bob-0002"}
MODELS = {"classifier": served_models("longformer")["classification"],
          "code-lm": ZOO / "code-lm", "code-language": ZOO / "code-language",
          "page-type": ZOO / "page-type"}
OVER_GRPC = (over_grpc.UNARY, over_grpc.STREAM)
EXTRA = "extra"  # Loaded and unloaded all the time; a copy of `classifier` by another name.


def picture(rng, width, height):
    """A grey PNG of some blocks."""
    rows = b"".join(b"\0" + bytes(255 if (x // 9 + y // 7) % 3 else rng.randrange(256)
                                  for x in range(width)) for y in range(height))

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1))
            + chunk(b"IEND", b""))


def infer(model, ids):
    return (f"/v2/models/{model}/infer", "application/json", json.dumps({"inputs": [
        {"name": "input_ids", "datatype": "INT64", "shape": [1, len(ids)], "data": ids}]}).encode())


def calls(rng):
    """[(path, content type, body)] of many lengths and sizes, and those of over_grpc."""
    found = []
    for _ in range(24):
        ids = [rng.randrange(4, 90) for _ in range(int(rng.paretovariate(0.7) * 8) % 1200 + 1)]
        found += [infer("classifier", ids), infer(EXTRA, ids)]
        rows = [ids] if rng.random() < 0.6 else [ids[:n + 1] for n in range(3)]
        found.append(over_grpc.infer(rng.choice(["classifier", EXTRA]), rows))
    source = pathlib.Path(__file__).read_text()
    for _ in range(12):
        begin = rng.randrange(len(source))
        text = (source[begin:] + source)[:int(rng.paretovariate(0.6) * 30) % 8000 + 1]
        found.append(("/v1/classify?model=code-language", "text/plain", text.encode()))
        body = {"model": "code-lm", "prompt": text[:rng.randrange(1, 600)], "seed": rng.randrange(99),
                "max_tokens": rng.choice([1, 8, 40, 120]), "temperature": 0.8,
                "n": rng.choice([1, 1, 3]), "stream": rng.random() < 0.5}
        found.append(("/v1/completions", "application/json", json.dumps(body).encode()))
    for _ in range(6):
        size = rng.randrange(20, 300), rng.randrange(20, 300)
        found.append(("/v1/classify?model=page-type", "image/png", picture(rng, *size)))
    return found


def essence(path, body):
    """The model's part of an answer: without times, identifiers or who shared the batch."""
    if path == "/v1/completions":
        texts = {}
        events = ([line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")]
                  if body.startswith((b"data: ", b":")) else [body])
        for event in events:
            for choice in json.loads(event)["choices"]:
                text, end = texts.get(choice["index"], ("", None))
                texts[choice["index"]] = (text + choice["text"], choice["finish_reason"] or end)
        return json.dumps(sorted(texts.items()))
    answer = json.loads(body)
    return json.dumps(answer.get("outputs") or answer["labels"])


def model_of(call):
    """The model's name of a call that goes to one, "" where the body says."""
    if call[0] in OVER_GRPC:
        return call[1]
    return call[0].split("/")[3] if "/models/" in call[0] else ""


def ask(server, call, key, timeout=120):
    """(status, essence or message)."""
    if call[0] in OVER_GRPC:
        return over_grpc.ask(server.grpc_port, call, KEYS[key], timeout)
    path, kind, body = call
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.http_port}{path}", data=body,
        headers={"Content-Type": kind, "Authorization": f"Bearer {KEYS[key]}"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, essence(path, answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")[:300]


def leave(server, call, key, seconds):
    """Sends the call and hangs up after `seconds`, or in the middle of its body."""
    if call[0] in OVER_GRPC:
        over_grpc.leave(server.grpc_port, call, KEYS[key], seconds)
        return
    path, kind, body = call
    head = (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nAuthorization: Bearer "
            f"{KEYS[key]}\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=30) as client:
        try:
            client.sendall(head + (body if seconds > 0 else body[:random.randrange(len(body) + 1)]))
            client.settimeout(max(seconds, 0.001))
            client.recv(1 << 16)
        except OSError:
            pass
