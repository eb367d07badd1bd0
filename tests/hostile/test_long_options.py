"""Every route with a list, from the API's own description: each of its other members long, beside a thousand
elements. What each element gets a copy of is checked before it is copied."""

import json

import pytest

from http1 import post
from server_process import ROOT

DESCRIPTION = json.loads((ROOT / "server/http/assets/openapi.json").read_text())
ELEMENTS = 1000
# Member and bytes: as much of each kind as one request easily holds.
LONG = {"string": "x" * 1_000_000, "array": ["x" * 48] * 20_000, "numbers": [1] * 400_000,
        "object": {str(token): 1.5 for token in range(60_000)}}
MODELS = {"/v1/completions": "code-lm"}
LISTS = {"input", "inputs", "prompt", "texts", "documents", "text", "text_2"}


def resolved(schema):
    while "$ref" in schema:
        schema = DESCRIPTION["components"]["schemas"][schema["$ref"].split("/")[-1]]
    return schema


def variants(schema):
    schema = resolved(schema)
    found = [one for key in ("anyOf", "oneOf") for part in schema.get(key, []) for one in variants(part)]
    return found or [schema]


def kinds(schema):
    """Of JSON; an array of numbers is "numbers"."""
    found = set()
    for one in variants(schema):
        types = one.get("type") or []
        found.update([types] if isinstance(types, str) else types)
        if "array" in found and resolved(one.get("items", {})).get("type") in ("integer", "number"):
            found = found - {"array"} | {"numbers"}
    return found


def routes():
    """(path, member with the list, needed members, long members) of each variant of a body."""
    for path, operations in DESCRIPTION["paths"].items():
        if "{" in path:
            continue  # Tensors: test_long_members.py.
        content = operations.get("post", {}).get("requestBody", {}).get("content", {})
        for schema in variants(content.get("application/json", {}).get("schema", {})):
            members = schema.get("properties", {})
            for listed in sorted(LISTS & members.keys()):
                if "array" not in kinds(members[listed]):
                    continue
                yield path, listed, schema.get("required", []), {
                    name: sorted(kinds(member) & LONG.keys()) for name, member in members.items()
                    if name != listed}


ROUTES = list(routes())


def test_the_description_has_lists():
    paths = {path for path, *_ in ROUTES}
    assert {"/v1/completions", "/v1/embeddings", "/v2/embed", "/api/embed", "/embed", "/rerank", "/v1/rerank",
            "/score", "/v1/classify", "/predict", "/tokenize"} <= paths, paths


@pytest.mark.parametrize("route", ROUTES, ids=[f"{path} {listed}" for path, listed, *_ in ROUTES])
def test_long_members_beside_a_list(victim, route):
    path, listed, required, members = route
    body = dict.fromkeys(required, "x") | {listed: ["x"] * ELEMENTS}
    body["model"] = MODELS.get(path, "code-language")
    if path == "/v1/completions":
        body["max_tokens"] = 1
    with victim.watched() as figures:
        figures["answers"] = {}
        for name, found in members.items():
            for kind in found:
                status, answer = post(victim.http_port, path, json.dumps(body | {name: LONG[kind]}))
                figures["answers"][f"{name} ({kind})"] = status
                assert status in (200, 400, 404, 413, 422, 429, 501), (name, kind, answer[:300])
