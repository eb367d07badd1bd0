"""A long document beside streams without end, and short requests beside it: who waits how long."""

import json
import struct
import threading
import time

import numpy
import openai
import pytest

from server_process import GOLDEN, Server, wait_until

CASE = GOLDEN / "longformer/classification/model"
LM = GOLDEN / "transformer_ls_lm/paper_dh32_r2_l16_w64/model"  # Bytes as tokens.
TOKENS = 8000
WIDTH, LAYERS = 256, 2


def write_long_model(directory):
    """The case's names with shapes large enough that a layer takes long."""
    config = json.loads((CASE / "config.json").read_text())
    sizes = {config["hidden_size"]: WIDTH, config["intermediate_size"]: 4 * WIDTH,
             config["max_position_embeddings"]: TOKENS + 2}
    raw = (CASE / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {name: entry["shape"] for name, entry in json.loads(raw[8:8 + length]).items()
               if name != "__metadata__"}
    first = {name: shape for name, shape in tensors.items() if ".layer.0." in name}
    tensors = {name: shape for name, shape in tensors.items() if ".layer." not in name}
    for layer in range(LAYERS):
        tensors |= {name.replace(".layer.0.", f".layer.{layer}."): shape
                    for name, shape in first.items()}
    config |= {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": LAYERS,
               "max_position_embeddings": TOKENS + 2, "attention_window": 512}
    rng = numpy.random.default_rng(3)
    header, blobs, offset = {}, [], 0
    for name, shape in tensors.items():
        shape = [sizes.get(extent, extent) for extent in shape]
        blobs.append((rng.standard_normal(shape) * shape[-1] ** -0.5).astype("<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [offset, offset + len(blobs[-1])]}
        offset += len(blobs[-1])
    text = json.dumps(header).encode()
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(blobs))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("long")
    write_long_model(directory)
    with Server([f"long={directory}", f"lm={LM}"], "--dtype=fp32",
                "--cache_bytes=256MiB") as running:
        yield running


def timed(server, tokens):
    """The answer's tensor for so many tokens, and its seconds."""
    ids = [[4 + i * 7919 % 390 for i in range(tokens)]]
    start = time.monotonic()
    status, answer = server.post_json("/v2/models/long/infer", {"inputs": [
        {"name": "input_ids", "datatype": "INT64", "shape": [1, tokens], "data": ids}]})
    assert status == 200, answer
    return answer["outputs"][0]["data"], time.monotonic() - start


def test_documents_streams_and_short_requests(server):
    timed(server, TOKENS)
    wanted, alone = timed(server, TOKENS)
    wanted_short, _ = timed(server, 20)
    stop, gaps, threads = threading.Event(), [], []

    def listen(seed):
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        last = None
        with client.completions.create(model="lm", stream=True, prompt=f"stream {seed}", seed=seed,
                                       temperature=1, max_tokens=100_000) as pieces:
            for _ in pieces:
                now = time.monotonic()
                if last is not None:
                    gaps.append(now - last)
                last = now
                if stop.is_set():
                    break

    try:
        for seed in range(2):
            threads.append(threading.Thread(target=listen, args=(seed,)))
            threads[-1].start()
        wait_until(lambda: len(gaps) > 50, 30, "two streams")
        answers, shorts = [], []
        threads.append(threading.Thread(target=lambda: answers.append(timed(server, TOKENS))))
        threads[-1].start()
        time.sleep(alone / 3)
        gaps.clear()
        while not answers:
            answer, seconds = timed(server, 20)
            assert answer == wanted_short
            shorts.append(seconds)
            time.sleep(0.1)
        ceiling = server.metric("longview_inter_token_ceiling_seconds", model="lm")
        slowest = max(gaps)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    answer, beside = answers[0]
    print(f"alone {alone:.2f} s, beside {beside:.2f} s; short requests {max(shorts):.3f} s of "
          f"{len(shorts)}; gap {slowest:.3f} s, ceiling {ceiling:.3f} s")
    assert answer == wanted
    assert beside <= 3 * alone + 1
    # How soon they are let through depends on what they are predicted to take: at most
    # --nested_share of what the document took so far.
    assert max(shorts) <= beside + 1
    assert slowest <= 2 * ceiling + 0.1  # The client's own time on a machine that is shared.
