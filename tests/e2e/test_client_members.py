"""Members and routes of other servers' clients, against the calls that say the same thing here."""

import base64
import json

import numpy as np
import pytest

from server_process import ROOT, ZOO, Server

OWN = ROOT / "tests/golden"
MODELS = {"reranker": OWN / "xlm_roberta/text_reranker",
          "late": OWN / "sentence_transformers/longformer_mean",
          "passages": OWN / "sentence_transformers/bert_unigram_more_rows"}
QUERY = "What is a span?"
DOCUMENTS = ["A span is a run of keys that a query sees.", "Longview reads long documents.",
             "The third text has a few more words than the others, so that it can be cut."]


@pytest.fixture(scope="module")
def server():
    with Server([",".join(f"{name}={path / 'model'}" for name, path in MODELS.items())],
                "--dtype=fp32") as server:
        yield server


def ok(server, path, body):
    status, answer = server.post_json(path, body)
    assert status == 200, answer
    return answer


def vectors(server, **body):
    return np.array([entry["embedding"] for entry in ok(server, "/v1/embeddings", body)["data"]])


def scores(server, documents, **more):
    answer = ok(server, "/v1/rerank", {"model": "reranker", "query": QUERY,
                                       "documents": documents, **more})
    by_index = {entry["index"]: entry["relevance_score"] for entry in answer["results"]}
    return [by_index[i] for i in range(len(documents))], answer


def tokens(server, text):
    answer = ok(server, "/tokenize", {"model": "reranker", "text": text,
                                      "add_special_tokens": False})
    return answer["tokens"]


def test_documents_are_cut_to_tokens(server):
    whole, _ = scores(server, DOCUMENTS)
    assert scores(server, DOCUMENTS, max_tokens_per_doc=None)[0] == whole
    assert scores(server, DOCUMENTS, max_tokens_per_doc=400)[0] == whole
    for most in (1, 3, 6):
        parts = [tokens(server, text) for text in DOCUMENTS]
        short = [text[:part[:most][-1]["end"]]
                 for text, part in zip(DOCUMENTS, parts, strict=True)]
        cut, answer = scores(server, DOCUMENTS, max_tokens_per_doc=most)
        assert cut == scores(server, short)[0]
        assert cut != whole
        gone = sum(max(len(part) - most, 0) for part in parts)
        assert answer["usage"]["truncated_tokens"] == gone
    status, answer = server.post_json("/v2/rerank", {
        "model": "reranker", "query": QUERY, "documents": DOCUMENTS, "max_tokens_per_doc": 0})
    assert status == 400 and "max_tokens_per_doc" in answer["message"]


def test_a_long_document_may_be_cut_to_what_fits(server):
    endless = "word " * 100_000
    status, answer = server.post_json("/v1/rerank", {
        "model": "reranker", "query": QUERY, "documents": [endless]})
    assert status == 400 and answer["error"]["param"] == "documents", answer
    cut, _ = scores(server, [endless], max_tokens_per_doc=20)
    short = endless[:tokens(server, endless[:1000])[19]["end"]]
    assert cut == scores(server, [short])[0]


def test_rank_fields(server):
    documents = [{"title": "A title", "text": text} for text in DOCUMENTS]
    assert scores(server, documents)[0] == scores(server, DOCUMENTS)[0]
    joined = [f"A title\n{text}" for text in DOCUMENTS]
    assert scores(server, documents, rank_fields=["title", "text"])[0] == scores(server, joined)[0]
    answer = scores(server, documents, return_documents=True)[1]
    for entry in answer["results"]:
        assert entry["document"] == documents[entry["index"]]


def test_score(server):
    one = ok(server, "/score", {"model": "reranker", "text_1": QUERY, "text_2": DOCUMENTS})
    wanted = scores(server, DOCUMENTS)[0]
    assert [entry["score"] for entry in one["data"]] == wanted
    assert [entry["index"] for entry in one["data"]] == [0, 1, 2]
    pairs = ok(server, "/score", {"model": "reranker", "text_1": [QUERY, "Who reads?"],
                                  "text_2": DOCUMENTS[:2]})
    assert pairs["data"][0]["score"] == wanted[0] and pairs["data"][1]["score"] != wanted[1]
    status, _ = server.post_json("/score", {"model": "reranker", "text_1": [QUERY] * 2,
                                            "text_2": DOCUMENTS})
    assert status == 400


def test_rerank_without_a_version(server):
    jina = ok(server, "/rerank", {"model": "reranker", "query": QUERY, "documents": DOCUMENTS})
    tei = ok(server, "/rerank", {"model": "reranker", "query": QUERY, "texts": DOCUMENTS})
    assert [(entry["index"], entry["relevance_score"]) for entry in jina["results"]] == \
        [(entry["index"], entry["score"]) for entry in tei]


@pytest.mark.parametrize("texts", [
    ["The harbour is old. ", "It was dredged twice. ", "Größer war er nie."],
    ["The harbour is old.", "It was dredged twice.", "Größer war er nie."]])
def test_late_chunking(server, texts):
    glue = "" if texts[0].endswith(" ") else " "
    document, chunks = glue.join(texts), []
    for text in texts:
        begin = chunks[-1][1] + len(glue) if chunks else 0
        chunks.append([begin, begin + len(text)])
    late = ok(server, "/v1/embeddings", {"model": "late", "input": texts, "late_chunking": True})
    assert late["chunking"] == "late" and [entry["index"] for entry in late["data"]] == [0, 1, 2]
    got = np.array([entry["embedding"] for entry in late["data"]])
    assert (got == vectors(server, model="late", input=document, chunks=chunks)).all()
    alone = vectors(server, model="late", input=texts)
    assert np.abs(got - alone).max() > 1e-3
    for value in (False, None):
        assert (vectors(server, model="late", input=texts, late_chunking=value) == alone).all()
    status, answer = server.post_json("/v1/embeddings", {
        "model": "late", "input": ["a", ""], "late_chunking": True})
    assert status == 400 and answer["error"]["message"].startswith("input[1]: "), answer


def by_purpose(server, model, purpose):
    answer = ok(server, "/v2/embed", {"model": model, "texts": DOCUMENTS, "input_type": purpose})
    return np.array(answer["embeddings"]["float"])


def test_purposes_pick_prompts(server):
    """One directory has the prompts query and document, which is empty, the other query and passage."""
    plain = vectors(server, model="late", input=DOCUMENTS)
    query = vectors(server, model="late", input=DOCUMENTS, prompt_name="query")
    assert (plain != query).any()
    for task, wanted in (("query", query), ("retrieval.query", query), ("separation", plain)):
        assert (vectors(server, model="late", input=DOCUMENTS, task=task) == wanted).all()
    for purpose, wanted in (("search_query", query), ("search_document", plain),
                            ("classification", plain)):
        assert (by_purpose(server, "late", purpose) == wanted).all(), purpose
    for purpose, name in (("search_query", "query"), ("search_document", "passage")):
        wanted = vectors(server, model="passages", input=DOCUMENTS, prompt_name=name)
        assert (by_purpose(server, "passages", purpose) == wanted).all()
        assert (vectors(server, model="passages", input=DOCUMENTS) != wanted).any()


def test_forms_of_vectors(server):
    forms = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    answer = ok(server, "/v2/embed", {"model": "late", "texts": DOCUMENTS,
                                      "embedding_types": forms})["embeddings"]
    wanted = vectors(server, model="late", input=DOCUMENTS)
    assert list(answer) == forms and (np.array(answer["float"]) == wanted).all()
    int8 = np.round(127 * wanted / np.abs(wanted).max(axis=1, keepdims=True)).astype(int)
    bits = np.packbits(wanted > 0, axis=1).astype(int)
    assert (np.array(answer["int8"]) == int8).all()
    assert (np.array(answer["uint8"]) == int8 + 128).all()
    assert (np.array(answer["ubinary"]) == bits).all()
    assert (np.array(answer["binary"]) == bits - 128).all()
    assert (np.array([np.frombuffer(base64.b64decode(text), "<f4")
                      for text in answer["base64"]]) == wanted.astype(np.float32)).all()
    jina = ok(server, "/v1/embeddings", {"model": "late", "input": DOCUMENTS,
                                         "embedding_type": "ubinary"})
    assert [entry["embedding"] for entry in jina["data"]] == answer["ubinary"]


def test_coheres_truncation(server):
    limit = json.loads(server.get("/v1/models/passages")[2])["max_tokens"]
    text = "first " * limit + "last " * limit
    for path in ("/v1/embed", "/v2/embed"):
        for truncate in (None, "NONE"):
            status, answer = server.post_json(path, {"model": "passages", "texts": ["a", text],
                                                     "truncate": truncate})
            assert status == 400 and answer["message"].startswith("texts[1]: "), answer
    for truncate, direction in (("END", "right"), ("START", "left")):
        answer = ok(server, "/v2/embed", {"model": "passages", "texts": [text],
                                          "truncate": truncate})
        wanted = vectors(server, model="passages", input=[text], truncate=True,
                         truncation_direction=direction)
        assert (np.array(answer["embeddings"]["float"]) == wanted).all()


def test_ollama(server):
    wanted = vectors(server, model="late", input=DOCUMENTS)
    answer = ok(server, "/api/embed", {"model": "late:latest", "input": DOCUMENTS})
    assert answer["model"] == "late" and (np.array(answer["embeddings"]) == wanted).all()
    one = ok(server, "/api/embeddings", {"model": "late", "prompt": DOCUMENTS[0]})
    assert one["embedding"] == answer["embeddings"][0]
    limit = json.loads(server.get("/v1/models/passages")[2])["max_tokens"]
    long = {"model": "passages", "input": "word " * 2 * limit}
    assert len(ok(server, "/api/embed", long)["embeddings"]) == 1
    status, error = server.post_json("/api/embed", {**long, "truncate": False})
    assert status == 400 and isinstance(error["error"], str)
    models = json.loads(server.get("/api/tags")[2])["models"]
    assert {model["name"] for model in models} == set(MODELS)
    assert json.loads(server.get("/api/version")[2])["version"]
    status, error = server.post_json("/api/chat", {"model": "late", "messages": []})
    assert status == 404 and isinstance(error["error"], str)


def test_token_ids_in_embed(server):
    ids = [[token["id"] for token in ok(server, "/tokenize", {"model": "late", "text": text})
            ["tokens"]] for text in DOCUMENTS]
    texts = ok(server, "/embed", {"model": "late", "inputs": DOCUMENTS})
    assert ok(server, "/embed", {"model": "late", "inputs": ids}) == texts
    assert ok(server, "/embed", {"model": "late", "inputs": ids[0]}) == texts[:1]


def test_seeds_of_64_bits():
    with Server([ZOO / "code-lm"]) as server:
        texts = {}
        for seed in (-1, -5, 2**40 + 7, 2**63 - 1, -2**63):
            body = {"prompt": "def f():", "max_tokens": 16, "temperature": 1, "seed": seed,
                    "store": True, "metadata": {"a": "b"}, "service_tier": "auto"}
            texts[seed] = ok(server, "/v1/completions", body)["choices"][0]["text"]
            assert ok(server, "/v1/completions", body)["choices"][0]["text"] == texts[seed]
        assert len(set(texts.values())) > 1
        greedy = ok(server, "/v1/completions", {"prompt": "def f():", "temperature": 0})
        same = ok(server, "/v1/completions", {"prompt": "def f():", "do_sample": False,
                                              "return_full_text": True})
        assert same["choices"][0]["text"] == "def f():" + greedy["choices"][0]["text"]
