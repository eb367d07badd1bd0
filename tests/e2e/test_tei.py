"""The routes of text-embeddings-inference, as its clients call them."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

from goldens import GOLDEN
from server_process import Server

TEXTS = ["What is Deep Learning?", "Longview reads long documents.", ""]


@pytest.fixture(scope="module")
def server():
    with Server([f"classify={GOLDEN / 'longformer/text_classification/model'}"],
                "--dtype=fp32") as server:
        yield server


def test_embed(server):
    status, vectors = server.post_json("/embed", {"inputs": TEXTS})
    assert status == 200 and len(vectors) == len(TEXTS)
    status, answer = server.post_json("/v1/embeddings", {"input": TEXTS, "normalize": True})
    assert vectors == [entry["embedding"] for entry in answer["data"]]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert server.post_json("/embed", {"inputs": TEXTS[0]})[1] == vectors[:1]
    raw = server.post_json("/embed", {"inputs": TEXTS[0], "normalize": False})[1][0]
    assert np.allclose(np.array(raw) / np.linalg.norm(raw), vectors[0], atol=1e-5)


def test_predict(server):
    status, one = server.post_json("/predict", {"inputs": TEXTS[0]})
    assert status == 200
    labels = server.post_json("/v1/classify", {"text": TEXTS[0], "return_logits": True})[1]
    assert [entry["label"] for entry in one] == [label["name"] for label in labels["labels"]]
    assert [entry["score"] for entry in one] == [label["score"] for label in labels["labels"]]
    assert server.post_json("/predict", {"inputs": [TEXTS[0]]})[1] == one
    status, raw = server.post_json("/predict", {"inputs": TEXTS[0], "raw_scores": True})
    assert [entry["score"] for entry in raw] == sorted(labels["logits"], reverse=True)
    pair = server.post_json("/predict", {"inputs": TEXTS[:2]})[1]
    assert pair != one and isinstance(pair[0], dict)
    paired = server.post_json("/v1/classify", {"text": TEXTS[0], "text_pair": TEXTS[1]})[1]
    assert pair[0]["score"] == paired["labels"][0]["score"]
    assert server.post_json("/predict", {"inputs": [[TEXTS[0]], TEXTS[:2]]})[1] == [one, pair]


def test_answers_carry_id_and_timing(server):
    status, headers, _ = server.post("/embed", {"inputs": "a"}, headers={"x-request-id": "mine"})
    assert headers["x-request-id"] == "mine" and "queue;dur=" in headers["Server-Timing"]


def test_errors_have_teis_shape(server):
    limit = json.loads(server.get("/v1/models/classify")[2])["max_tokens"]
    too_long = "word " * 2 * limit
    for path, body, status, kind in [
            ("/embed", {"inputs": too_long}, 400, "invalid_request_error"),
            ("/embed", {"inputs": 5}, 400, "invalid_request_error"),
            ("/embed", {"inputs": "a", "model": "nobody"}, 404, "not_found_error"),
            ("/predict", {"inputs": [["a", "b", "c"]]}, 400, "invalid_request_error"),
            ("/rerank", {"query": "q", "texts": ["a"], "model": "classify"}, 400,
             "invalid_request_error")]:
        got, answer = server.post_json(path, body)
        assert got == status and answer["error_type"] == kind, (path, answer)
        assert isinstance(answer["error"], str) and sorted(answer) == ["error", "error_type"]
    got, answer = server.post_json("/embed", {"inputs": ["a", too_long], "truncate": True})
    assert got == 200 and len(answer) == 2


def test_a_model_by_query(server):
    call = urllib.request.Request(f"{server.url}/embed?model=nobody",
                                  data=json.dumps({"inputs": "a"}).encode())
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(call)
    assert caught.value.code == 404
    assert server.post_json("/embed?model=classify", {"inputs": "a"})[0] == 200
