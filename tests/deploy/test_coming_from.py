"""deploy/COMING_FROM.md: every path, flag and metric that it says stands for another server's
exists."""

import json
import re
import subprocess

import pytest

from server_process import ROOT, SERVER, ZOO, Server

CODE = re.compile(r"`([^`]+)`")


def named():
    """The code in the last cells of the tables, but for that of clients' own settings."""
    settings = False
    for line in (ROOT / "deploy/COMING_FROM.md").read_text().splitlines():
        cells = line.strip("|").split("|")
        settings = line.startswith("| client | settings |") or (settings and line.startswith("| "))
        if line.startswith("| ") and len(cells) == 2 and not settings and cells[1].strip() not in ("here", "---"):
            yield from CODE.findall(cells[1])


NAMED = list(named())


@pytest.fixture(scope="module")
def server():
    with Server([ZOO / "code-language"]) as server:
        server.post_json("/v1/classify", {"text": "int main() {}"})
        yield server


def test_paths(server):
    offered = set(json.loads(server.get("/openapi.json")[2])["paths"])
    paths = {name for name in NAMED if name.startswith("/")}
    assert len(paths) > 20 and not paths - offered


def test_members_without_effect(server):
    """The page's table against the descriptions of requests."""
    document = json.loads(server.get("/openapi.json")[2])
    told = {}
    for line in (ROOT / "deploy/COMING_FROM.md").read_text().splitlines():
        cells = line.strip("|").split("|")
        if len(cells) == 3 and line.startswith("| `/"):
            for path in CODE.findall(cells[0]):
                told.setdefault(path, set()).update(CODE.findall(cells[1]))
    members = {}
    for path, verbs in document["paths"].items():
        content = verbs.get("post", {}).get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        for option in schema.get("anyOf", [schema]):
            name = option.get("$ref", "").rpartition("/")[2]
            described = document["components"]["schemas"].get(name, {}).get("properties", {})
            names = members.setdefault(path, set())
            for member, its in described.items():
                inner = {f"{member}.{inner}": more for inner, more
                         in its.get("properties", {}).items()}
                names |= {known for known, more in {member: its, **inner}.items()
                          if more.get("description") == "Without effect."}
    assert {path: names for path, names in members.items() if names} == \
        {path: names for path, names in told.items() if names}


def test_flags():
    text = subprocess.run([SERVER, "--help"], capture_output=True, text=True, timeout=60).stdout
    offered = set(re.findall(r"--\w+", text))
    flags = {name for name in NAMED if name.startswith("--")}
    assert len(flags) > 10 and not flags - offered


def test_metrics(server):
    families = re.findall(r"^# TYPE (\S+)", server.get("/metrics")[2].decode(), re.MULTILINE)
    offered = {family + suffix for family in families
               for suffix in ("", "_bucket", "_sum", "_count")}
    metrics = {name for name in NAMED if name.startswith("longview_")}
    assert len(metrics) > 8 and not metrics - offered


def test_nothing_here_has_the_form_of_another_server():
    for name in NAMED:
        assert not re.match(r"(te|nv|vllm|infinity)[_:]|--\w+-\w", name), name
