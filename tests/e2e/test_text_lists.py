"""Lists of texts on /v1, texts that are empty, and how errors name what was sent."""

import json

import pytest

from goldens import GOLDEN
from server_process import Server

TEXTS = ["def f(x):\n    return x\n", "int main() { return 0; }\n", "#!/bin/sh\necho hello\n"]


@pytest.fixture(scope="module")
def text_server():
    """Small models with tokenizers: classification, fill-mask, question answering."""
    names = {"classify": "text_classification", "mask": "text_fill_mask",
             "qa": "text_question_answering"}
    models = ",".join(f"{name}={GOLDEN / 'longformer' / case / 'model'}"
                      for name, case in names.items())
    with Server([models], "--dtype=fp32") as server:
        yield server


def test_a_list_is_what_its_texts_are_alone(zoo_server):
    alone = [zoo_server.post_json("/v1/classify", {"model": "code-language", "text": text})[1]
             for text in TEXTS]
    status, many = zoo_server.post_json("/v1/classify", {"model": "code-language", "text": TEXTS})
    assert status == 200
    assert sorted(many) == ["model", "results", "usage", "version"]
    assert [result["labels"] for result in many["results"]] == [one["labels"] for one in alone]
    assert all(sorted(result) == ["labels", "logits", "timing", "usage"]
               for result in many["results"])
    assert many["usage"]["input_tokens"] == sum(one["usage"]["input_tokens"] for one in alone)


def test_one_bad_text(text_server):
    model = json.loads(text_server.get("/v1/models/classify")[2])
    too_long = "word " * (2 * model["max_tokens"])
    body = {"model": "classify", "text": ["a", too_long, "b"]}
    status, answer = text_server.post_json("/v1/classify", body)
    assert status == 400 and "text[1]" in answer["error"]["message"], answer
    assert answer["error"]["param"] == "text"
    status, answer = text_server.post_json("/v1/classify", {**body, "partial": True})
    assert status == 200
    first, second, third = answer["results"]
    assert first["labels"] and third["labels"] and second["error"]["code"] == "INVALID_ARGUMENT"
    assert str(model["max_tokens"]) in second["error"]["message"]


def test_lists_of_masks(text_server):
    text = "Paris is the <mask> of France."
    body = {"model": "mask", "text": text, "top_k": 3}
    alone = text_server.post_json("/v1/fill-mask", body)[1]
    status, many = text_server.post_json("/v1/fill-mask", {**body, "text": [text, "no mask", text],
                                                           "partial": True})
    assert status == 200
    assert many["results"][0]["masks"] == many["results"][2]["masks"] == alone["masks"]
    assert "mask" in many["results"][1]["error"]["message"]


def test_empty_text_is_a_text(text_server):
    status, empty = text_server.post_json("/v1/classify", {"model": "classify", "text": ""})
    assert status == 200 and empty["usage"]["input_tokens"] == 2, empty  # <s> </s>
    ids = text_server.post_json("/v1/classify", {"model": "classify", "token_ids": [0, 2]})[1]
    assert ids["labels"] == empty["labels"]
    listed = text_server.post_json("/v1/classify", {"model": "classify", "text": ["", "a"]})[1]
    assert listed["results"][0]["labels"] == empty["labels"]
    for body in ({"input": ""}, {"input": ["", ""]}):
        status, answer = text_server.post_json("/v1/embeddings", {"model": "classify", **body})
        assert status == 200, answer
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [""]}
    status, answer = text_server.post_json("/v2/models/classify/infer", {"inputs": [tensor]})
    assert status == 200, answer
    status, answer = text_server.post_json("/v1/answer", {"model": "qa", "text": "",
                                                          "question": "Who?"})
    assert status == 200 and answer["answers"] == [], answer
    status, answer = text_server.post_json("/v1/estimate", {"model": "classify", "text": ""})
    assert status == 200 and answer["usage"]["input_tokens"] == 2


def test_without_any_text(text_server):
    for body in ({}, {"token_ids": []}):
        status, answer = text_server.post_json("/v1/classify", {"model": "classify", **body})
        assert status == 400 and answer["error"]["param"] == "text", answer


def test_errors_name_the_field_that_was_sent(text_server, zoo_server):
    too_long = "word " * 20000
    for path, field, body in [("/v1/embeddings", "input", {"input": too_long}),
                              ("/v1/embeddings", "input", {"input": ["a", too_long]}),
                              ("/v1/classify", "text", {"text": too_long}),
                              ("/v1/classify", "token_ids", {"token_ids": [5] * 20000})]:
        status, answer = text_server.post_json(path, {"model": "classify", **body})
        assert status == 400 and answer["error"]["param"] == field, answer
        assert answer["error"]["message"].startswith(field)
    status, answer = zoo_server.post_json("/v1/completions", {"model": "code-lm",
                                                              "prompt": "a" * 500000})
    assert status == 400 and answer["error"]["param"] == "prompt"
    status, answer = text_server.post_json("/embed", {"model": "classify",
                                                      "inputs": ["a", too_long]})
    assert status == 400 and answer["error"].startswith("inputs[1]"), answer
