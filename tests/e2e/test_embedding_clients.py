"""Stock clients of embeddings and reranking, unpatched: Cohere, LangChain, LlamaIndex, openai,
huggingface_hub."""

import base64

import cohere
import numpy as np
import openai
import pytest
import tiktoken
from huggingface_hub import InferenceClient
from huggingface_hub.errors import BadRequestError
from langchain_huggingface import HuggingFaceEndpointEmbeddings
from langchain_openai import OpenAIEmbeddings
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

from goldens import GOLDEN
from server_process import Server

MODELS = {"reranker": "xlm_roberta/text_reranker",
          "embedder": "sentence_transformers/longformer_mean",
          "classifier": "longformer/text_classification"}
TEXTS = ["What is a span?", "Longview reads long documents.", "A third text."]


@pytest.fixture(scope="module")
def server():
    with Server([",".join(f"{name}={GOLDEN / case / 'model'}" for name, case in MODELS.items())],
                "--dtype=fp32") as server:
        yield server


@pytest.fixture(scope="module")
def vectors(server):
    """The embeddings of TEXTS as they are answered without a client; the directory normalises."""
    status, answer = server.post_json("/v1/embeddings", {"model": "embedder", "input": TEXTS})
    assert status == 200, answer
    return np.array([entry["embedding"] for entry in answer["data"]])


def close(got, wanted):
    assert np.shape(got) == np.shape(wanted)
    assert np.abs(np.array(got) - wanted).max() < 1e-6


@pytest.mark.client("cohere", "rerank, v1 and v2")
@pytest.mark.parametrize("kind", [cohere.Client, cohere.ClientV2])
def test_cohere(server, kind):
    query, documents = TEXTS[0], TEXTS[1:]
    wanted = server.post_json("/v1/rerank", {"model": "reranker", "query": query,
                                             "documents": documents})[1]["results"]
    client = kind(api_key="-", base_url=server.url)
    answer = client.rerank(model="reranker", query=query, documents=documents)
    assert [(entry.index, entry.relevance_score) for entry in answer.results] == \
        [(entry["index"], entry["relevance_score"]) for entry in wanted]
    answer = client.rerank(model="reranker", query=query, documents=documents, top_n=1)
    assert [entry.index for entry in answer.results] == [wanted[0]["index"]]
    version = "1" if kind is cohere.Client else "2"
    assert answer.id and answer.meta.api_version.version == version
    assert answer.meta.billed_units.search_units == 1
    with pytest.raises(cohere.NotFoundError) as caught:
        client.rerank(model="nobody", query=query, documents=documents)
    assert "nobody" in caught.value.body["message"]


@pytest.mark.client("cohere", "rerank, v1 and v2")
def test_cohere_members_of_rerank(server):
    query, documents = TEXTS[0], TEXTS[1:]
    client = cohere.Client(api_key="-", base_url=server.url)
    plain = client.rerank(model="reranker", query=query, documents=documents)
    answer = client.rerank(model="reranker", query=query, rank_fields=["text"],
                           documents=[{"text": text, "title": "t"} for text in documents],
                           return_documents=True, max_chunks_per_doc=3)
    assert [entry.relevance_score for entry in answer.results] == \
        [entry.relevance_score for entry in plain.results]
    assert {entry.document.text for entry in answer.results} == set(documents)
    client = cohere.ClientV2(api_key="-", base_url=server.url)
    answer = client.rerank(model="reranker", query=query, documents=documents, priority=1,
                           max_tokens_per_doc=4096)
    assert [entry.relevance_score for entry in answer.results] == \
        [entry.relevance_score for entry in plain.results]


@pytest.mark.client("cohere", "embed, v1 and v2")
def test_cohere_embed(server, vectors):
    client = cohere.ClientV2(api_key="-", base_url=server.url)
    answer = client.embed(model="embedder", texts=TEXTS, input_type="search_document",
                          embedding_types=["float", "int8", "ubinary"])
    close(answer.embeddings.float_, vectors)
    assert answer.texts == TEXTS and answer.id and answer.meta.api_version.version == "2"
    assert np.array_equal(answer.embeddings.ubinary, np.packbits(vectors > 0, axis=1))
    client = cohere.Client(api_key="-", base_url=server.url)
    close(client.embed(model="embedder", texts=TEXTS).embeddings, vectors)
    answer = client.embed(model="embedder", texts=TEXTS, embedding_types=["float"],
                          input_type="search_query", truncate="END")
    status, wanted = server.post_json("/v1/embeddings", {"model": "embedder", "input": TEXTS,
                                                         "prompt_name": "query"})
    close(answer.embeddings.float_, [entry["embedding"] for entry in wanted["data"]])
    with pytest.raises(cohere.BadRequestError):
        client.embed(model="embedder", images=["data:image/png;base64,"])


def langchain(server, **more):
    return OpenAIEmbeddings(model="embedder", base_url=f"{server.url}/v1", api_key="-", **more)


@pytest.mark.client("langchain-openai", "`OpenAIEmbeddings`")
def test_langchain_openai(server, vectors):
    client = langchain(server, check_embedding_ctx_length=False)
    close(client.embed_documents(TEXTS), vectors)
    close(client.embed_query(TEXTS[0]), vectors[0])
    assert len(client.embed_documents([])) == 0


@pytest.mark.client("langchain-openai", "`OpenAIEmbeddings`")
def test_langchain_openai_sends_token_ids_by_default(server, monkeypatch):
    """LangChain then sends ids of OpenAI's tokenizer: the server takes them as its own."""
    letters = tiktoken.Encoding("letters", pat_str=r".", special_tokens={}, mergeable_ranks={
        bytes([byte]): byte for byte in range(256)})
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: letters)
    ids = list(b"span")
    wanted = server.post_json("/v1/embeddings", {"model": "embedder", "input": [ids]})[1]
    vector = np.array(wanted["data"][0]["embedding"])
    close(langchain(server).embed_query("span"), vector)


@pytest.mark.client("langchain-huggingface", "`HuggingFaceEndpointEmbeddings`")
def test_langchain_huggingface(server, vectors):
    client = HuggingFaceEndpointEmbeddings(model="org/embedder", huggingfacehub_api_token="-",
                                           provider="hf-inference")
    client.client = InferenceClient(model=f"{server.url}/embed?model=embedder")
    close(client.embed_documents(TEXTS), vectors)
    close(client.embed_query(TEXTS[0]), vectors[0])


@pytest.mark.client("llama-index-embeddings-text-embeddings-inference", "`TextEmbeddingsInference`")
def test_llama_index_tei(server, vectors):
    client = TextEmbeddingsInference(model_name="embedder", base_url=server.url,
                                     endpoint="/embed?model=embedder", embed_batch_size=2)
    close(client.get_text_embedding_batch(TEXTS), vectors)
    close(client.get_text_embedding(TEXTS[0]), vectors[0])


@pytest.mark.client("llama-index-embeddings-openai", "`OpenAIEmbedding`")
def test_llama_index_openai(server, vectors):
    client = OpenAIEmbedding(model_name="embedder", api_base=f"{server.url}/v1", api_key="-")
    close(client.get_text_embedding_batch(TEXTS), vectors)
    close(client.get_query_embedding("A query"), client.get_text_embedding("A query"))


@pytest.mark.client("huggingface-hub", "`InferenceClient`: features, similarity, classification")
def test_huggingface_hub(server, vectors):
    client = InferenceClient(model=f"{server.url}/embed?model=embedder")
    close(client.feature_extraction(TEXTS), vectors)
    close(client.feature_extraction(TEXTS[0], normalize=True, truncate=True,
                                    truncation_direction="Left")[0], vectors[0])
    client = InferenceClient(model=f"{server.url}/similarity?model=embedder")
    close(client.sentence_similarity(TEXTS[0], other_sentences=TEXTS[1:]), vectors[1:] @ vectors[0])
    client = InferenceClient(model=f"{server.url}/predict?model=classifier")
    status, answer = server.post_json("/v1/classify", {"model": "classifier", "text": TEXTS[0]})
    best = answer["labels"][0]
    got = client.text_classification(TEXTS[0])
    assert (got.label, got.score) == (best["name"], best["score"])
    got = client.text_classification(TEXTS[0], function_to_apply="none", top_k=1)
    status, answer = server.post_json("/v1/classify", {"model": "classifier", "text": TEXTS[0],
                                                       "return_logits": True})
    assert got.score == max(answer["logits"])
    with pytest.raises(BadRequestError):
        client.zero_shot_classification(TEXTS[0], candidate_labels=["good", "bad"])


def test_similarity_names_what_is_wrong(server):
    good = {"source_sentence": "a", "sentences": ["b", ""]}
    for body, part in (({}, "inputs"), ({"inputs": "a"}, "inputs"),
                       ({"inputs": {**good, "sentences": []}}, "inputs.sentences"),
                       ({"inputs": {**good, "sentences": ["b", 5]}}, "inputs.sentences[1]"),
                       ({"inputs": {"sentences": ["b"]}}, "inputs.source_sentence"),
                       ({"inputs": good, "parameters": {"truncate": 1}}, "truncate")):
        status, answer = server.post_json("/similarity?model=embedder", body)
        assert status == 400 and part in answer["error"], answer
        assert sorted(answer) == ["error", "error_type"]
    status, answer = server.post_json("/similarity?model=embedder", {"inputs": good})
    assert status == 200 and len(answer) == 2


@pytest.mark.client("openai", "embeddings with `dimensions` and base64")
def test_openai(server, vectors):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="-")
    short = vectors[:, :8] / np.linalg.norm(vectors[:, :8], axis=1, keepdims=True)
    for form in ("float", "base64"):
        answer = client.embeddings.create(model="embedder", input=TEXTS, dimensions=8,
                                          encoding_format=form)
        got = [entry.embedding for entry in answer.data]
        if form == "base64":
            got = [np.frombuffer(base64.b64decode(text), np.float32) for text in got]
        close(got, short)
    # Without a format the client asks for base64 and decodes it.
    answer = client.embeddings.create(model="embedder", input=TEXTS)
    close([entry.embedding for entry in answer.data], vectors)
