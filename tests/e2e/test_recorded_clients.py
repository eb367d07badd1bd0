"""Requests of other languages' stock clients at their defaults, as recorded bytes (tests/languages/record.py): each
gets the status and the members that its client reads."""

import base64
import http.client
import json
import pathlib
import socket

import pytest

from client_models import client_models_server
from http_bytes import request_length

RECORDED = sorted((pathlib.Path(__file__).parent / "recorded").glob("*.http"))
INPUTS = json.loads((pathlib.Path(__file__).parents[1] / "languages/inputs.json").read_text())

NUMBERS = [float]
USAGE = {"prompt_tokens": int, "total_tokens": int}
EMBEDDINGS = {"object": "list", "model": "embedder", "usage": USAGE,
              "data": [{"object": "embedding", "index": int, "embedding": NUMBERS}]}
COMPLETION = {"id": str, "object": "text_completion", "created": int, "model": "code-lm",
              "choices": [{"text": str, "index": 0}]}
MODELS = {"object": "list", "data": [{"id": str, "object": "model", "created": int, "owned_by": str}]}
RANKED: dict = {"results": [{"index": int, "relevance_score": float}]}
COHERE_RANKED = {**RANKED, "id": str, "meta": {"api_version": {"version": str}, "billed_units": {"search_units": 1}}}
COHERE_EMBEDDINGS: dict = {"id": str, "embeddings": {"float": [NUMBERS]}, "texts": INPUTS["texts"], "meta": dict}
OPENAI_ERROR = {"message": str, "type": "invalid_request_error"}
# Answers to each client and case, with HTTP's status if that is not 200.
OPENAI = {"embed": EMBEDDINGS, "embed_short": EMBEDDINGS, "complete": {**COMPLETION, "usage": USAGE},
          "stream": [COMPLETION], "models": MODELS,
          "unknown_model": (404, {"error": {**OPENAI_ERROR, "code": "model_not_found"}}),
          "lacking_task": (400, {"error": OPENAI_ERROR})}
COHERE = {"rerank": COHERE_RANKED, "rerank_first": COHERE_RANKED, "rerank_settings": COHERE_RANKED,
          "embed": COHERE_EMBEDDINGS, "embed_query": COHERE_EMBEDDINGS,
          "unknown_model": (404, {"message": str}), "lacking_task": (400, {"message": str})}
WANTED = {
    "javascript-openai": OPENAI,
    "javascript-huggingface": {
        "embed": [NUMBERS], "embed_settings": [NUMBERS], "similarity": NUMBERS,
        "classify": [[{"label": str, "score": float}]], "zero_shot_refused": (400, {"error": str}),
        "unknown_model": (404, {"error": str}), "lacking_task": (400, {"error": str})},
    "javascript-cohere": COHERE,
    "javascript-langchain": {**{case: OPENAI[case] for case in OPENAI if case != "models"},
                             "embed_one_line": EMBEDDINGS},
    "javascript-vercel": {"embed": EMBEDDINGS, "complete_as_user": OPENAI["complete"],
                          **{case: OPENAI[case] for case in ("unknown_model", "lacking_task")}},
    "go-openai": OPENAI,
    "go-sashabaranov": OPENAI,
    "go-cohere": COHERE,
    "rust-async-openai": OPENAI,
    "java-openai": OPENAI,
    "java-cohere": {"score": COHERE_RANKED, "unknown_model": COHERE["unknown_model"],
                    "lacking_task": COHERE["lacking_task"],
                    **dict.fromkeys(("embed", "embed_query"), {**COHERE_EMBEDDINGS, "embeddings": [NUMBERS]})},
    "java-jina": {"score": {**RANKED, "usage": USAGE}, "embed": EMBEDDINGS,
                  "unknown_model": OPENAI["unknown_model"], "lacking_task": (400, {"error": {"message": str}})},
}


@pytest.fixture(scope="module")
def server():
    with client_models_server() as server:
        yield server


def decoded(vector):
    """A vector's numbers, which some clients ask for in base64."""
    return memoryview(base64.b64decode(vector)).cast("f").tolist() if isinstance(vector, str) else vector


def misses(got, wanted, place="answer"):
    """Sentences about members that are missing or of another kind; more members than wanted are well."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for name, part in wanted.items():
            if name not in got:
                yield f"{place} has no {name}"
            else:
                value = decoded(got[name]) if part is NUMBERS else got[name]
                yield from misses(value, part, f"{place}.{name}")
    elif isinstance(wanted, list) and len(wanted) == 1 and isinstance(got, list) and got:
        for index, entry in enumerate(got):
            yield from misses(entry, wanted[0], f"{place}[{index}]")
    elif isinstance(wanted, type):
        if not isinstance(got, (int, float) if wanted is float else wanted) or isinstance(got, bool):
            yield f"{place} is {got!r}, not {wanted.__name__}"
    elif got != wanted:
        yield f"{place} is {got!r}, not {wanted!r}"


def replay(server, request):
    """(status, answer): events of a stream are a list, whose end is checked."""
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=60) as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection)
        response.begin()
        body = response.read().decode()
    if response.getheader("Content-Type").startswith("text/event-stream"):
        *events, end = [event.removeprefix("data: ") for event in body.split("\n\n") if event]
        assert end == "[DONE]", body
        return response.status, [json.loads(event) for event in events]
    return response.status, json.loads(body)


def test_every_case_is_recorded():
    assert {path.stem for path in RECORDED} == {f"{client}.{case}" for client, cases in WANTED.items()
                                                for case in cases}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_request(server, path):
    request = path.read_bytes()
    assert request_length(request) == len(request)
    client, case = path.stem.split(".")
    wanted = WANTED[client][case]
    status, shape = wanted if isinstance(wanted, tuple) else (200, wanted)
    got = replay(server, request)
    assert got[0] == status, got
    assert not list(misses(got[1], shape)), got


def test_what_is_missing_is_noticed():
    whole = {"id": "a", "data": [{"embedding": base64.b64encode(b"\0\0\0\0").decode()}]}
    wanted = {"id": str, "data": [{"embedding": NUMBERS}]}
    assert not list(misses(whole, wanted))
    assert list(misses({**whole, "id": None}, wanted)) == ["answer.id is None, not str"]
    assert list(misses({"id": "a", "data": []}, wanted)) != []
    assert list(misses({"id": "a", "data": [{}]}, wanted)) == ["answer.data[0] has no embedding"]
