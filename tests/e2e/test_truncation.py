"""Texts that are longer than a model reads: who says whether they are cut, and chunks of them."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from goldens import GOLDEN
from server_process import Server

LIMIT = 40
LONG = " ".join(f"word {i}, an answer." for i in range(60))
EMBEDDER = "xlm_roberta_mean_dense_default_prompt"
FIRST_TOKEN = "roberta_list_mean_cls"


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """By name: models with a limit of LIMIT tokens, of which `own` cuts and `keeps` does not."""
    folder = tmp_path_factory.mktemp("models")
    sources = {"plain": f"sentence_transformers/{EMBEDDER}",
               "own": f"sentence_transformers/{EMBEDDER}",
               "keeps": f"sentence_transformers/{EMBEDDER}",
               "first": f"sentence_transformers/{FIRST_TOKEN}",
               "ranks": "xlm_roberta/text_reranker"}
    settings = {"own": {"truncate": True}, "keeps": {"truncate": False}}
    for name, source in sources.items():
        shutil.copytree(GOLDEN / source / "model", folder / name)
        (folder / name / "longview.json").write_text(
            json.dumps({"max_tokens": LIMIT, **settings.get(name, {})}))
    return folder


@pytest.fixture(scope="module")
def server(directories):
    with Server([str(directories)], "--dtype=fp32") as server:
        yield server


@pytest.fixture(scope="module")
def cutting(directories):
    with Server([str(directories)], "--dtype=fp32", "--truncate") as server:
        yield server


def cut(server, model, path="/v1/embeddings", **members):
    """How many tokens were cut; None: the text was refused as too long."""
    body = {"model": model, **members}
    if path == "/v1/embeddings":
        body["input"] = LONG
    else:
        body.update(query="word", documents=[LONG, "an answer"])
    status, answer = server.post_json(path, body)
    if status == 400:
        assert "limit of 40" in answer["error"]["message"]
        return None
    assert status == 200, answer
    return answer["usage"]["truncated_tokens"]


def test_request_directory_and_flag(server, cutting):
    assert cut(server, "plain") is None
    assert cut(server, "own") > 0
    assert cut(server, "own", truncate=False) is None
    assert cut(server, "plain", truncate=True) > 0
    assert cut(server, "plain", truncate=None) is None
    assert cut(cutting, "plain") > 0
    assert cut(cutting, "keeps") is None
    assert cut(cutting, "keeps", truncate=True) > 0
    assert cut(cutting, "plain", truncate=False) is None
    assert cut(server, "ranks", "/v1/rerank") is None
    assert cut(cutting, "ranks", "/v1/rerank") > 0
    assert cut(cutting, "ranks", "/v1/rerank", truncate=False) is None


def test_routes_of_text_embeddings_inference(server, cutting):
    assert server.post_json("/embed?model=plain", {"inputs": LONG})[0] in (400, 413, 422)
    for default in ({}, {"truncate": None}, {"truncate": True}):
        status, vectors = cutting.post_json("/embed?model=plain", {"inputs": LONG, **default})
        assert status == 200 and len(vectors) == 1
    assert cutting.post_json("/embed?model=plain", {"inputs": LONG, "truncate": False})[0] != 200
    body = {"query": "word", "texts": [LONG]}
    assert server.post_json("/rerank?model=ranks", body)[0] != 200
    assert cutting.post_json("/rerank?model=ranks", body)[0] == 200
    assert server.post_json("/rerank?model=ranks", {**body, "truncate_prompt_tokens": 12})[0] == 200


@pytest.mark.parametrize("model, path", [("plain", "/v1/embeddings"), ("ranks", "/v1/rerank")])
def test_truncate_prompt_tokens(server, model, path):
    whole = cut(server, model, path, truncate=True)
    assert cut(server, model, path, truncate_prompt_tokens=-1) == whole
    assert cut(server, model, path, truncate_prompt_tokens=None) is None
    assert cut(server, model, path, truncate_prompt_tokens=30) == whole + 10
    for tokens in (41, 0, -2, "7"):
        body = {"model": model, "input": LONG, "truncate_prompt_tokens": tokens}
        if path == "/v1/rerank":
            body = {"model": model, "query": "word", "documents": [LONG],
                    "truncate_prompt_tokens": tokens}
        status, answer = server.post_json(path, body)
        assert status == 400 and "truncate_prompt_tokens" in answer["error"]["message"], answer


def chunks(server, text=LONG, model="plain", **members):
    status, answer = server.post_json("/v1/embeddings", {"model": model, "input": text, **members})
    assert status == 200, answer
    spans = [(entry["chunk"]["start"], entry["chunk"]["end"]) for entry in answer["data"]]
    return answer["chunking"], spans, np.array([entry["embedding"] for entry in answer["data"]])


def test_a_text_of_any_length_has_chunks(server):
    way, spans, vectors = chunks(server, chunk_tokens=16)
    assert way == "windows"
    assert spans[0][0] == 0 and spans[-1][1] == len(LONG)
    for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
        assert -1 <= start - end <= 1  # Both may hold the space between them.
    # Ranges that share no character are the same chunks.
    apart = [i for i in range(1, len(spans) - 1)
             if spans[i - 1][1] <= spans[i][0] and spans[i][1] <= spans[i + 1][0]]
    assert len(apart) > 10
    way, _, chosen = chunks(server, chunks=[list(spans[i]) for i in apart])
    assert way == "windows"
    assert np.array_equal(chosen, vectors[apart])
    assert chunks(server, "a short text", chunk_tokens=2)[0] == "late"


def test_windows_begin_where_the_limit_is_passed(server):
    """One chunk a token: as many as the model reads at once beside two specials, and one more."""
    words = LONG.split(" ")
    for count in range(2, 24):
        way, spans, _ = chunks(server, " ".join(words[:count]), chunk_tokens=1, prompt="")
        assert way == ("late" if len(spans) <= LIMIT - 2 else "windows"), len(spans)
    assert way == "windows"


def test_a_model_that_pools_by_its_first_token_reads_chunks_one_by_one(server):
    way, spans, vectors = chunks(server, model="first", chunk_tokens=10)
    assert way == "separate"
    status, alone = server.post_json("/v1/embeddings", {
        "model": "first", "input": [LONG[start:end] for start, end in spans]})
    assert status == 200
    assert np.array_equal(vectors, [entry["embedding"] for entry in alone["data"]])


def test_chunks_by_grpc(server):
    message = {"model": "plain", "text": LONG, "chunk_tokens": 16, "window_overlap": 8}
    ran = subprocess.run(["grpcurl", "-plaintext", "-emit-defaults", "-d", json.dumps(message),
                          server.grpc, "longview.v1.TextService/Embed"], capture_output=True,
                         text=True, timeout=60, check=True)
    answer = json.loads(ran.stdout)
    assert answer["chunking"] == "windows"
    assert len(answer["chunks"]) > 5
    way, spans, vectors = chunks(server, chunk_tokens=16, window_overlap=8)
    assert [(chunk["start"], chunk["end"]) for chunk in answer["chunks"]] == spans
    assert np.allclose(np.reshape(answer["embedding"], vectors.shape), vectors, atol=1e-6)


def test_bad_windows(server):
    for members, param in (({"window_overlap": 8}, "window_overlap"),
                           ({"chunk_tokens": 4, "window_overlap": 34}, "window_overlap"),
                           ({"chunk_tokens": 39}, "chunk_tokens"),
                           ({"chunk_tokens": 4, "truncate": True}, "chunk_tokens"),
                           ({"chunk_tokens": 4, "truncate_prompt_tokens": 4}, "chunk_tokens")):
        status, answer = server.post_json("/v1/embeddings",
                                          {"model": "plain", "input": LONG, **members})
        assert status == 400 and answer["error"]["param"] == param, answer
