"""What clients of every language send at their defaults: pages, base URLs, types, kept connections."""

import http.client
import json

import pytest

from server_process import ZOO, Server

PAGE = "http://localhost:3000"
KEY = "a-key-of-32-characters-for-tests-x"


def exchange(server, method, path, body=None, **headers):
    """(status, headers by their names in lower case, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    connection.request(method, path, body, {name.replace("_", "-"): value
                                            for name, value in headers.items()})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, data


def ask(server, path, origin=PAGE):
    """A browser's question before a page's call."""
    return exchange(server, "OPTIONS", path, Origin=origin, Access_Control_Request_Method="POST",
                    Access_Control_Request_Headers="authorization,content-type")


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text(f"me:{KEY}\n")
    with Server([ZOO / "code-language"], f"--cors_origins={PAGE},https://page.example",
                f"--api_keys_file={keys}") as server:
        yield server


def test_a_page_of_the_list_calls(keyed):
    status, headers, _ = ask(keyed, "/v1/classify")
    assert status == 200
    assert headers["access-control-allow-origin"] == PAGE
    assert "authorization" in headers["access-control-allow-headers"]
    assert headers["vary"] == "Origin"
    body = json.dumps({"text": "int main() {}"})
    typed = {"Content_Type": "application/json", "Origin": PAGE}
    status, headers, _ = exchange(keyed, "POST", "/v1/classify", body, **typed)
    assert status == 401 and headers["access-control-allow-origin"] == PAGE
    status, headers, _ = exchange(keyed, "POST", "/v1/classify", body, **typed,
                                  Authorization=f"Bearer {KEY}")
    assert status == 200 and headers["access-control-allow-origin"] == PAGE
    assert "retry-after" in headers["access-control-expose-headers"].lower()


def test_other_pages_are_refused_and_told_of(keyed):
    status, headers, answer = ask(keyed, "/v1/classify", "https://other.example")
    assert status == 403 and "access-control-allow-origin" not in headers
    assert b"--cors_origins" in answer
    line = next(line for line in keyed.log().splitlines() if "other.example" in line)
    assert "--cors_origins" in line
    assert ask(keyed, "/v2/repository/models/code-language/unload")[0] == 403


def test_no_page_calls_unless_it_is_allowed(zoo_server):
    status, headers, answer = ask(zoo_server, "/v1/classify")
    assert status == 403 and not any(name.startswith("access-control") for name in headers)
    assert b"--cors_origins is not set" in answer


def test_json_without_its_type(zoo_server):
    body = json.dumps({"model": "code-language", "text": "import os"})
    status, _, answer = exchange(zoo_server, "POST", "/v1/classify?model=code-language", body,
                                 Content_Type="text/plain;charset=UTF-8")
    assert status == 400 and b"send Content-Type: application/json" in answer, answer
    for kind, text in (("application/octet-stream", body), ("text/plain", '{"name": "value"}')):
        status, _, answer = exchange(zoo_server, "POST", "/v1/classify?model=code-language", text,
                                     Content_Type=kind)
        assert status == 200, (kind, answer)


def test_paths_as_clients_join_them(zoo_server):
    for path in ("//v1/models", "/v1//models", "/v1/models//code-language"):
        assert exchange(zoo_server, "GET", path)[0] == 200, path
    for path, near in (("/completions", "/v1/completions"), ("/v1/v1/models", "/v1/models"),
                       ("/v1/similarity", "/similarity")):
        status, _, answer = exchange(zoo_server, "POST", path, "{}")
        assert status == 404, path
        assert json.loads(answer)["error"]["message"].endswith(f"there is {near}"), answer


def test_a_fault_is_said_once_and_in_one_way(zoo_server):
    calls = {"/v1/classify": {"text": "a"}, "/v1/embeddings": {"input": ["a", "b"]},
             "/v1/completions": {"prompt": "a"}, "/v1/rerank": {"query": "a", "documents": ["b"]},
             "/tokenize": {"text": "a"}}
    for path, body in calls.items():
        status, answer = zoo_server.post_json(path, body | {"model": "nobody"})
        error = answer["error"]
        assert status == 404 and error["message"].startswith('model "nobody" not found'), path
        assert (error["code"], error["type"]) == ("model_not_found", "invalid_request_error"), path
    status, _, answer = exchange(zoo_server, "GET", "/v2/models/nobody")
    assert status == 404 and json.loads(answer)["error"].startswith('model "nobody" not found')
    long = {"model": "code-language", "input": ["a", "int x;\n" * 100000]}
    status, answer = zoo_server.post_json("/v1/embeddings", long)
    message = answer["error"]["message"]
    assert status == 400 and message.startswith("input[1]: ") and message.count("input") == 1
    status, answer = zoo_server.post_json("/v1/completions", {"model": "code-lm", "prompt": "a",
                                                             "temperature": -1})
    assert status == 400 and "e+" not in answer["error"]["message"], answer
    status, answer = zoo_server.post_json("/v1/detect", {"model": "code-language", "image": "aGk="})
    assert status == 400 and answer["error"]["code"] == "UNIMPLEMENTED"


def test_token_ids_are_told_of(zoo_server):
    embed = {"model": "code-language", "input": [[97, 98], [99]]}
    status, headers, _ = exchange(zoo_server, "POST", "/v1/embeddings", json.dumps(embed))
    assert status == 200 and "check_embedding_ctx_length" in headers["x-longview-warning"]
    assert exchange(zoo_server, "POST", "/v1/embeddings", json.dumps(embed))[0] == 200
    lines = [line for line in zoo_server.log().splitlines() if "check_embedding_ctx_length" in line]
    assert len(lines) == 1 and "code-language" in lines[0] and "--refuse_token_ids" in lines[0]
    status, headers, _ = exchange(zoo_server, "POST", "/v1/embeddings",
                                  json.dumps(embed | {"input": "text"}))
    assert status == 200 and "x-longview-warning" not in headers
    with Server([ZOO / "code-language"], "--refuse_token_ids") as server:
        status, _, answer = exchange(server, "POST", "/v1/embeddings", json.dumps(embed))
        assert status == 400 and b"--refuse_token_ids" in answer
