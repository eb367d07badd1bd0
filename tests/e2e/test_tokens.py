"""/tokenize in its three dialects, /detokenize."""

import json

import pytest

from goldens import GOLDEN
from server_process import Server

TEXT = "Hello wörld, 你好"


@pytest.fixture(scope="module")
def server():
    models = f"roberta={GOLDEN / 'longformer/text_classification/model'}"
    with Server([models], "--dtype=fp32") as server:
        yield server


def test_own_form(server):
    status, answer = server.post_json("/tokenize", {"text": TEXT})
    assert status == 200 and answer["model"] == "roberta", answer
    tokens = answer["tokens"]
    assert answer["count"] == len(tokens) > 5
    assert sorted(tokens[0]) == ["end", "id", "special", "start", "text"]
    assert tokens[0] == {"id": 0, "text": "<s>", "start": 0, "end": 0, "special": True}
    assert tokens[-1]["special"] and tokens[-1]["text"] == "</s>"
    for token in tokens[1:-1]:
        assert token["text"] == TEXT[token["start"]:token["end"]] and not token["special"]
    assert tokens[-2]["end"] == len(TEXT)
    status, bare = server.post_json("/tokenize", {"text": TEXT, "add_special_tokens": False})
    assert [token["id"] for token in bare["tokens"]] == [token["id"] for token in tokens[1:-1]]
    empty = server.post_json("/tokenize", {"model": "roberta", "text": ""})[1]
    assert [token["text"] for token in empty["tokens"]] == ["<s>", "</s>"]


def test_what_the_model_reads(server):
    """The ids are those that the model answers by."""
    ids = [token["id"] for token in server.post_json("/tokenize", {"text": TEXT})[1]["tokens"]]
    by_ids = server.post_json("/v1/classify", {"token_ids": ids})[1]
    by_text = server.post_json("/v1/classify", {"text": TEXT})[1]
    assert by_ids["labels"] == by_text["labels"]


def test_other_dialects(server):
    own = server.post_json("/tokenize", {"text": TEXT})[1]["tokens"]
    status, tei = server.post_json("/tokenize", {"inputs": [TEXT, "a"], "ignored": True})
    assert status == 200 and len(tei) == 2
    assert [token["id"] for token in tei[0]] == [token["id"] for token in own]
    assert sorted(tei[0][1]) == ["id", "special", "start", "stop", "text"]
    assert tei[0][0]["start"] is None and tei[0][1]["stop"] == own[1]["end"]
    assert server.post_json("/tokenize", {"inputs": TEXT})[1] == tei[:1]
    status, vllm = server.post_json("/tokenize", {"model": "roberta", "prompt": TEXT})
    limit = json.loads(server.get("/v1/models/roberta")[2])["max_tokens"]
    assert vllm == {"count": len(own), "max_model_len": limit,
                    "tokens": [token["id"] for token in own]}


def test_detokenize(server):
    ids = server.post_json("/tokenize", {"prompt": TEXT})[1]["tokens"]
    assert server.post_json("/detokenize", {"tokens": ids[1:-1]})[1] == {"prompt": TEXT,
                                                                         "text": TEXT}
    with_special = server.post_json("/detokenize?model=roberta", {"ids": ids})[1]["text"]
    assert with_special == f"<s>{TEXT}</s>"
    skipped = server.post_json("/detokenize", {"ids": ids, "skip_special_tokens": True})[1]["text"]
    assert skipped == TEXT


def test_generators_and_bytes(zoo_server):
    status, answer = zoo_server.post_json("/tokenize", {"model": "code-lm", "text": "é="})
    assert status == 200, answer
    assert [(token["text"], token["start"], token["end"]) for token in answer["tokens"]
            if not token["special"]] == [("é", 0, 1), ("é", 0, 1), ("=", 1, 2)]
    ids = [token["id"] for token in answer["tokens"]]
    assert zoo_server.post_json("/detokenize", {"model": "code-lm", "ids": ids})[1]["text"] == "é="


@pytest.mark.parametrize("body, field", [
    ({}, "text"), ({"text": 7}, "text"), ({"text": "a", "prompt": "b"}, "prompt"),
    ({"inputs": []}, "inputs"), ({"inputs": ["a", 1]}, "inputs[1]"),
    ({"text": "a", "unknown": 1}, "unknown"), ({"text": "a" * (5 << 20)}, "text"),
    ({"text": "a", "add_special_tokens": "yes"}, "add_special_tokens")])
def test_errors(server, body, field):
    status, answer = server.post_json("/tokenize", body)
    assert status == 400 and answer["error"]["param"] == field, answer


def test_models(server, zoo_server):
    assert server.post_json("/tokenize", {"model": "nobody", "text": "a"})[0] == 404
    status, answer = zoo_server.post_json("/tokenize", {"text": "a"})
    assert status == 400 and "code-lm" in answer["error"]["message"]
    assert "page-type" not in answer["error"]["message"], "which reads no text"
    assert zoo_server.post_json("/tokenize", {"model": "page-type", "text": "a"})[0] == 400
    assert server.post_json("/detokenize", {"tokens": [1.5]})[0] == 400
    assert server.post_json("/detokenize", {})[1]["error"]["param"] == "tokens"
