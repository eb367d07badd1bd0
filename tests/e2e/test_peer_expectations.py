"""What the tests of other servers expect of calls that are served here too, in words of our own:
vLLM's of pooling models and of Cohere's path, llama.cpp's of embeddings and reranking.
COMING_FROM.md names what is left out on purpose."""

import base64

import numpy as np
import pytest

from server_process import ROOT, Server

OWN = ROOT / "tests/golden"
MODELS = {"embedder": "sentence_transformers/bert_wordpiece_limit_128",
          "reranker": "xlm_roberta/text_reranker"}
LIMIT = 128
TEXT = "The best thing about a long document is that somebody has read it before."
LONG = " ".join([TEXT] * 40)
IDS = [101, 30, 31, 32, 102]


@pytest.fixture(scope="module")
def server():
    with Server([",".join(f"{name}={OWN / case / 'model'}" for name, case in MODELS.items())],
                "--dtype=fp32") as server:
        yield server


def post(server, path, status=200, **body):
    got, answer = server.post_json(path, body)
    assert got == status, answer
    return answer


def embed(server, given, status=200, **members):
    return post(server, "/v1/embeddings", status, model="embedder", input=given, **members)


def vectors(answer):
    return np.array([entry["embedding"] for entry in answer["data"]])


def message(answer):
    return answer["error"]["message"]


class TestEmbeddings:
    @pytest.mark.parametrize("given, count", [(TEXT, 1), ([TEXT], 1), ([TEXT, "x", "y z"], 3),
                                              (IDS, 1), ([IDS, IDS[:1] + IDS[2:]], 2)])
    def test_one_entry_for_each_input(self, server, given, count):
        answer = embed(server, given, encoding_format="float")
        assert answer["object"] == "list" and len(answer["data"]) == count
        assert [entry["index"] for entry in answer["data"]] == list(range(count))
        assert np.allclose(np.linalg.norm(vectors(answer), axis=1), 1, atol=1e-5)
        usage = answer["usage"]
        assert usage["prompt_tokens"] == usage["total_tokens"] > 0

    def test_usage_of_ids_is_their_number(self, server):
        assert embed(server, [IDS, IDS])["usage"]["prompt_tokens"] == 2 * len(IDS)

    def test_base64_is_the_same_numbers(self, server):
        plain = vectors(embed(server, [TEXT, "x"], encoding_format="float"))
        for row, entry in zip(plain, embed(server, [TEXT, "x"], encoding_format="base64")["data"],
                              strict=True):
            decoded = np.frombuffer(base64.b64decode(entry["embedding"]), "<f4")
            assert np.allclose(decoded, row, atol=1e-7)

    def test_the_same_text_has_the_same_vector(self, server):
        rows = vectors(embed(server, [TEXT] * 6 + ["something else"]))
        assert (rows[:6] == rows[0]).all()
        assert not np.allclose(rows[0], rows[6], atol=1e-3)

    @pytest.mark.parametrize("given", [LONG, list(range(30, 90)) * 4])
    def test_truncation_leaves_the_tokens_asked_for(self, server, given):
        for tokens in (10, LIMIT):
            answer = embed(server, given, truncate_prompt_tokens=tokens)
            assert answer["usage"]["prompt_tokens"] == tokens
        assert embed(server, given, truncate_prompt_tokens=-1)["usage"]["prompt_tokens"] == LIMIT

    def test_truncation_beyond_the_limit(self, server):
        assert "truncate_prompt_tokens" in message(embed(server, LONG, 400,
                                                         truncate_prompt_tokens=LIMIT + 1))

    def test_too_long_a_text(self, server):
        assert str(LIMIT) in message(embed(server, LONG, 400))

    def test_normalize(self, server):
        raw = vectors(embed(server, TEXT, normalize=False))[0]
        unit = vectors(embed(server, TEXT, normalize=True))[0]
        assert abs(np.linalg.norm(raw) - 1) > 1e-3
        assert np.allclose(raw / np.linalg.norm(raw), unit, atol=1e-5)

    @pytest.mark.parametrize("dimensions", [-1, 0, 100_000])
    def test_bad_dimensions(self, server, dimensions):
        assert "dimensions" in message(embed(server, TEXT, 400, dimensions=dimensions))

    @pytest.mark.parametrize("given", [[], "none at all", 5, [5.5], {"texts": TEXT}])
    def test_bad_inputs(self, server, given):
        body = {} if given == "none at all" else {"input": given}
        assert "input" in message(post(server, "/v1/embeddings", 400, model="embedder", **body))

    def test_pooling_none_has_no_vector(self, server):
        assert "pooling" in message(embed(server, TEXT, 400, pooling="none"))

    def test_an_empty_text(self, server):
        assert len(vectors(embed(server, ["", TEXT]))) == 2

    def test_members_that_are_null(self, server):
        assert (vectors(embed(server, TEXT, encoding_format=None, dimensions=None)) ==
                vectors(embed(server, TEXT))).all()

    @pytest.mark.parametrize("member", ["encoding_format", "embed_dtype", "endianness"])
    def test_unknown_forms_of_vectors(self, server, member):
        assert member in message(embed(server, TEXT, 400, **{member: "unheard of"}))

    def test_tokens_are_those_that_are_counted(self, server):
        tokens = post(server, "/tokenize", model="embedder", prompt=TEXT)["tokens"]
        assert embed(server, TEXT)["usage"]["prompt_tokens"] == len(tokens)
        assert (vectors(embed(server, tokens)) == vectors(embed(server, TEXT))).all()

    def test_an_unknown_model(self, server):
        answer = post(server, "/v1/embeddings", 404, model="nobody", input=TEXT)
        assert answer["error"]["code"] == "model_not_found"


DOCUMENTS = ["a span of tokens", "bread and butter", "tokens are counted", "nothing"]


class TestRerank:
    @pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
    def test_best_first(self, server, path):
        answer = post(server, path, model="reranker", query="what is a span", documents=DOCUMENTS)
        scores = [entry["relevance_score"] for entry in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        assert sorted(entry["index"] for entry in answer["results"]) == [0, 1, 2, 3]
        assert answer["id"] and answer["usage"]["total_tokens"] > 0

    @pytest.mark.parametrize("top_n, count", [(1, 1), (2, 2), (4, 4), (100, 4)])
    def test_top_n(self, server, top_n, count):
        answer = post(server, "/v1/rerank", model="reranker", query="q", documents=DOCUMENTS,
                      top_n=top_n)
        assert len(answer["results"]) == count

    @pytest.mark.parametrize("documents", [[], "text", 5, [5], None])
    def test_bad_documents(self, server, documents):
        post(server, "/v1/rerank", 400, model="reranker", query="q", documents=documents)

    @pytest.mark.parametrize("text", ["texts", "documents"])
    def test_all_come_without_top_n(self, server, text):
        answer = post(server, "/rerank", model="reranker", query="q", **{text: DOCUMENTS})
        assert len(answer if text == "texts" else answer["results"]) == len(DOCUMENTS)

    def test_usage_grows_with_the_documents(self, server):
        counts = []
        for documents in (DOCUMENTS[:1], DOCUMENTS):
            usage = post(server, "/rerank", model="reranker", query="q", documents=documents)["usage"]
            assert usage["prompt_tokens"] == usage["total_tokens"]
            counts.append(usage["total_tokens"])
        assert 0 < counts[0] < counts[1]

    def test_documents_are_cut(self, server):
        def tokens(**members):
            answer = post(server, "/rerank", model="reranker", query="q", documents=[LONG[:600], "x"],
                          **members)
            assert len(answer["results"]) == 2
            return answer["usage"]["prompt_tokens"]
        assert tokens(max_tokens_per_doc=10) < tokens(max_tokens_per_doc=20) < tokens()

    @pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
    @pytest.mark.parametrize("limit", [0, -5])
    def test_documents_are_not_cut_to_nothing(self, server, path, limit):
        answer = post(server, path, 400, model="reranker", query="q", documents=DOCUMENTS,
                      max_tokens_per_doc=limit)
        assert "max_tokens_per_doc" in str(answer["error"])

    def test_too_long_a_query(self, server):
        post(server, "/v1/rerank", 400, model="reranker", query="query " * 2000, documents=DOCUMENTS)

    def test_too_long_a_document(self, server):
        long = "document " * 2000
        post(server, "/v1/rerank", 400, model="reranker", query="q", documents=["x", long])
        answer = post(server, "/v1/rerank", model="reranker", query="q", documents=["x", long],
                      truncate_prompt_tokens=100)
        assert answer["usage"]["prompt_tokens"] <= 200

    def test_the_form_of_text_embeddings_inference(self, server):
        ranks = post(server, "/rerank?model=reranker", query="what is a span", texts=DOCUMENTS)
        assert isinstance(ranks, list) and {"index", "score"} <= set(ranks[0])


class TestScore:
    def score(self, server, one, two, status=200, **members):
        return post(server, "/score", status, model="reranker", text_1=one, text_2=two, **members)

    @pytest.mark.parametrize("one, two, count", [("a", "b", 1), ("a", DOCUMENTS, 4),
                                                 (["a"], DOCUMENTS, 4), (DOCUMENTS, DOCUMENTS, 4)])
    def test_pairs(self, server, one, two, count):
        answer = self.score(server, one, two)
        assert [entry["index"] for entry in answer["data"]] == list(range(count))
        assert all(0 <= entry["score"] <= 1 for entry in answer["data"])

    def test_scores_are_rerank_s(self, server):
        ranked = post(server, "/v1/rerank", model="reranker", query="a", documents=DOCUMENTS)
        by_index = {entry["index"]: entry["relevance_score"] for entry in ranked["results"]}
        for entry in self.score(server, "a", DOCUMENTS)["data"]:
            assert entry["score"] == pytest.approx(by_index[entry["index"]], abs=1e-7)

    def test_too_long_a_text(self, server):
        assert "tokens" in message(self.score(server, "text " * 2000, DOCUMENTS, 400))
        assert "truncate_prompt_tokens" in message(
            self.score(server, "text " * 2000, DOCUMENTS, 400, truncate_prompt_tokens=1000))
        self.score(server, "text " * 2000, DOCUMENTS, truncate_prompt_tokens=100)

    @pytest.mark.parametrize("one, two", [([], []), ("a", []), (["a", "b"], ["c"]),
                                          (["a", "b"], ["c", "d", "e"]), (5, "a")])
    def test_other_lengths(self, server, one, two):
        self.score(server, one, two, 400)


class TestWithoutTheTask:
    def test_a_model_that_embeds_does_not_rank(self, server):
        assert "rerank" in message(post(server, "/score", 400, model="embedder", text_1="a", text_2="b"))
        assert "rerank" in message(post(server, "/v1/rerank", 400, model="embedder", query="a",
                                        documents=["b"]))


class TestCohereEmbed:
    def cohere(self, server, status=200, **members):
        return post(server, "/v2/embed", status, model="embedder", **members)

    def floats(self, server, *texts, **members):
        answer = self.cohere(server, texts=texts, embedding_types=["float"], **members)
        return np.array(answer["embeddings"]["float"])

    def test_the_vectors_are_those_of_v1_embeddings(self, server):
        texts = [TEXT, "x", "y z"]
        assert np.allclose(self.floats(server, *texts), vectors(embed(server, texts)), atol=1e-7)

    def test_what_is_in_an_answer(self, server):
        answer = self.cohere(server, texts=[TEXT], embedding_types=["float"])
        assert answer["id"] and answer["texts"] == [TEXT]
        assert answer["meta"]["api_version"]["version"] == "2"
        assert answer["meta"]["billed_units"]["input_tokens"] > 0
        assert answer["meta"]["tokens"] == answer["meta"]["billed_units"]

    def test_types(self, server):
        given = self.cohere(server, texts=[TEXT],
                            embedding_types=["float", "base64", "binary", "ubinary"])["embeddings"]
        plain = np.array(given["float"][0])
        decoded = np.frombuffer(base64.b64decode(given["base64"][0]), "<f4")
        assert np.allclose(decoded, plain, rtol=1e-5)
        assert len(given["binary"][0]) == len(given["ubinary"][0]) == len(plain) // 8
        assert np.array_equal(np.unpackbits(np.array(given["ubinary"][0], np.uint8)), plain > 0)

    def test_long_texts(self, server):
        long = " ".join(["first"] * LIMIT + ["other things"] * LIMIT)
        assert str(LIMIT) in self.cohere(server, 400, texts=[long], truncate="NONE")["message"]
        end, start = (self.floats(server, long, truncate=side)[0] for side in ("END", "START"))
        assert not np.allclose(end, start, atol=1e-3)

    @pytest.mark.parametrize("members", [{}, {"texts": []}, {"texts": 5}, {"images": ["data:,"]},
                                         {"texts": [TEXT], "embedding_types": ["unheard of"]}])
    def test_bad_requests(self, server, members):
        assert self.cohere(server, 400, **members)["message"]
