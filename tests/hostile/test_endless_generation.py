"""A document beside streams that never end: both get their share."""

import json
import threading
import time

import numpy
import pytest
from safetensors.numpy import save_file

from http1 import connect, head
from victim import Victim

TOKENS = 4096
HIDDEN = 768
LAYERS = 3


def random_longformer(folder):
    """A classifier as wide as Longformer-base: a layer of 4,096 tokens takes tenths of a second."""
    rng = numpy.random.default_rng(1)
    config = {
        "architectures": ["LongformerForSequenceClassification"], "model_type": "longformer",
        "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": 12,
        "intermediate_size": 4 * HIDDEN, "attention_window": [512] * LAYERS, "vocab_size": 100,
        "max_position_embeddings": TOKENS + 2, "type_vocab_size": 1, "pad_token_id": 1,
        "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
        "num_labels": 2, "id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}
    weights = {}

    def linear(name, rows, columns):
        weights[f"{name}.weight"] = rng.standard_normal((rows, columns), numpy.float32) * 0.02
        weights[f"{name}.bias"] = numpy.zeros(rows, numpy.float32)

    def norm(name):
        weights[f"{name}.weight"] = numpy.ones(HIDDEN, numpy.float32)
        weights[f"{name}.bias"] = numpy.zeros(HIDDEN, numpy.float32)

    base = "longformer.embeddings"
    for name, rows in (("word", 100), ("position", TOKENS + 2), ("token_type", 1)):
        weights[f"{base}.{name}_embeddings.weight"] = rng.standard_normal(
            (rows, HIDDEN), numpy.float32) * 0.02
    norm(f"{base}.LayerNorm")
    for i in range(LAYERS):
        layer = f"longformer.encoder.layer.{i}"
        for name in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{name}", HIDDEN, HIDDEN)
            linear(f"{layer}.attention.self.{name}_global", HIDDEN, HIDDEN)
        linear(f"{layer}.attention.output.dense", HIDDEN, HIDDEN)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", 4 * HIDDEN, HIDDEN)
        linear(f"{layer}.output.dense", HIDDEN, 4 * HIDDEN)
        norm(f"{layer}.output.LayerNorm")
    linear("classifier.dense", HIDDEN, HIDDEN)
    linear("classifier.out_proj", 2, HIDDEN)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    directory = random_longformer(tmp_path_factory.mktemp("models") / "document")
    with Victim("code-language", "code-lm", directory) as server:
        yield server


class Streams:
    """Generations that begin anew when they end, until they are told to stop."""

    def __init__(self, server, count):
        self.server, self.over, self.bytes = server, threading.Event(), 0
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        body = json.dumps({"model": "code-lm", "prompt": "def ", "max_tokens": 4000,
                           "stream": True, "ignore_eos": True, "stop": ["\u0000"]}).encode()
        while not self.over.is_set():
            raw = connect(self.server.http_port, timeout=60)
            try:
                raw.sendall(head("POST", "/v1/completions", Connection="close",
                                 Content_Length=len(body)) + body)
                while not self.over.is_set() and (more := raw.recv(65536)):
                    self.bytes += len(more)
            except OSError:
                pass
            finally:
                raw.close()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(60)


def document(server, timeout=120):
    """The seconds that a document of 4,096 tokens takes."""
    ids = [(i * 37) % 90 + 5 for i in range(TOKENS)]
    start = time.monotonic()
    status, answer = server.post_json("/v2/models/document/infer", {
        "inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, TOKENS],
                    "data": ids}]}, timeout=timeout)
    assert status == 200, answer
    return time.monotonic() - start


@pytest.mark.parametrize("streams", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_a_document_beside_endless_generation(busy, streams):
    document(busy)
    alone = min(document(busy) for _ in range(2))
    generation = Streams(busy, streams)
    try:
        time.sleep(1)
        with busy.watched() as figures:
            before = generation.bytes
            beside = document(busy, timeout=60)
            figures.update(alone_s=round(alone, 2), beside_s=round(beside, 2),
                           streamed_KB=(generation.bytes - before) // 1000)
            assert beside <= 3 * alone + 1, figures
            assert generation.bytes > before
    finally:
        generation.stop()
