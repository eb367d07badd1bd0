"""Clients apart: keys hide clients from each other; roles, limits, clients behind a proxy."""

import http.client
import json
import socket
import subprocess

import grpc
import pytest

from secure_server import SecureServer, call_grpc, grpc_methods
from server_process import ROOT, ZOO, Server, wait_until

MODELS = [f"classifier={ZOO / 'code-language'}", f"lm={ZOO / 'code-lm'}"]
KEYS = """\
alice:key-a
bob:key-b
narrow:key-n max_inflight=1
slow:key-s tokens_per_second=0.5
reader:key-i role=infer
operator:key-c role=control
watcher:key-m role=metrics
"""
PROMPT = "def main():\n" + "    value = compute(value, 17)\n" * 40
TOKENS = '{"token_ids": [0, 10, 11, 2], "model": "classifier"}'
CLASSIFY = "/longview.v1.TextService/Classify"
CLASSIFY_TOKENS = b"\x0a\x0aclassifier\x22\x04\x00\x0a\x0b\x02"
LOADS = {"/inference.GRPCInferenceService/RepositoryModelLoad",
         "/inference.GRPCInferenceService/RepositoryModelUnload",
         "/longview.v1.ModelService/LoadModel", "/longview.v1.ModelService/UnloadModel"}
INFERENCE = ("/embed", "/predict", "/rerank", "/similarity", "/tokenize", "/detokenize",
             "/v2/rerank", "/score", "/v2/embed", "/api/embed")
STATISTICS = {"/inference.GRPCInferenceService/ModelStatistics"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with SecureServer(tmp_path_factory.mktemp("clients"), keys=KEYS, models=MODELS) as running:
        running.metrics_headers = {"Authorization": "Bearer key-m"}
        yield running


def complete(server, key, prompt=PROMPT, max_tokens=1):
    body = {"model": "lm", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0,
            "ignore_eos": True}
    status, headers, answer = server.call_http("POST", "/v1/completions", key=key,
                                               body=json.dumps(body))
    return status, headers, json.loads(answer)


def cached(server, key, prompt=PROMPT):
    status, _, answer = complete(server, key, prompt)
    assert status == 200, answer
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def grpcurl(server, key, method, *messages):
    done = subprocess.run(
        ["grpcurl", "-plaintext", "-H", f"authorization: Bearer {key}", "-d",
         "\n".join(map(json.dumps, messages)), server.grpc, f"longview.v1.TextService/{method}"],
        capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_metrics_ask_for_the_key_that_is_there_for_them(server):
    for key, wanted in ((None, 401), ("wrong", 401), ("key-i", 403), ("key-c", 403), ("key-m", 200),
                        ("key-a", 200)):
        assert server.call_http("GET", "/metrics", key=key)[0] == wanted, key
    assert server.call_http("GET", "/readyz")[0] == 200


def test_a_key_does_not_see_what_another_one_prompted(server):
    assert cached(server, "key-a") == 0
    found = cached(server, "key-a")
    assert found > 512
    assert cached(server, "key-b") == 0
    assert cached(server, "key-b") == found


def test_a_key_does_not_see_what_another_one_read_as_a_document(server):
    text = "# a secret report\n" + "line = read(document)\n" * 50
    status, out, error = grpcurl(server, "key-a", "OpenDocument", {"model": "lm", "text": text})
    assert status == 0, error
    handle = json.loads(out)["handle"]
    question = {"document": handle, "text": "why", "max_tokens": 1}
    status, _, error = grpcurl(server, "key-b", "Generate", question)
    assert status != 0 and "NotFound" in error
    status, _, error = grpcurl(server, "key-b", "CloseDocument", {"handle": handle})
    assert status != 0 and "NotFound" in error
    assert cached(server, "key-b", text) == 0
    status, _, error = grpcurl(server, "key-a", "Generate", question)
    assert status == 0, error
    grpcurl(server, "key-a", "CloseDocument", {"handle": handle})


def test_prefixes_are_shared_if_the_operator_says_so(tmp_path):
    with SecureServer(tmp_path / "shared", "--share_prefixes", keys=KEYS,
                      models=MODELS[1:]) as shared:
        assert cached(shared, "key-a") == 0
        assert cached(shared, "key-b") > 512


def test_a_key_has_its_places_in_flight_and_no_more(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    connection.request("POST", "/v1/completions", headers={"Authorization": "Bearer key-n"},
                       body=json.dumps({"model": "lm", "prompt": "x", "max_tokens": 3000,
                                        "stream": True, "ignore_eos": True}))
    answer = connection.getresponse()
    assert answer.status == 200
    answer.readline()

    status, headers, body = server.call_http("POST", "/v1/classify", key="key-n", body=TOKENS)
    assert status == 429 and int(headers["Retry-After"]) >= 1, body
    assert json.loads(body)["error"]["type"] == "rate_limit_error"
    with server.channel() as channel:
        code, _, error = call_grpc(channel, CLASSIFY, key="key-n", request=CLASSIFY_TOKENS)
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        assert b"RetryInfo" in details and b"CLIENT_INFLIGHT" in details
        # A request of a stream is answered like any other; the stream stays.
        request = b"\x0a\x0aclassifier\x1a\x02id"
        code, message, _ = call_grpc(channel, "/inference.GRPCInferenceService/ModelStreamInfer",
                                     True, True, "key-n", request)
        assert code == grpc.StatusCode.OK and b"requests in flight" in message
        assert b"id" in message
        code, _, error = call_grpc(channel, CLASSIFY, key="key-a", request=CLASSIFY_TOKENS)
        assert code == grpc.StatusCode.OK, error
    assert server.call_http("GET", "/v1/models", key="key-n")[0] == 200
    assert server.metric("longview_rejected_total", reason="quota") >= 3

    answer.close()
    connection.close()
    wait_until(lambda: server.call_http("POST", "/v1/classify", key="key-n", body=TOKENS)[0] == 200,
               10, "a place that is free again")
    # One after the other never meet.
    for _ in range(50):
        status, _, body = server.call_http("POST", "/v1/classify", key="key-n", body=TOKENS)
        assert status == 200, body


def test_a_key_that_owes_tokens_waits(server):
    assert server.call_http("POST", "/v1/classify", key="key-s", body=TOKENS)[0] == 200
    status, headers, body = server.call_http("POST", "/v1/classify", key="key-s", body=TOKENS)
    assert status == 429 and b"tokens per second" in body
    assert 4 <= int(headers["Retry-After"]) <= 6  # 1 token of 4 was there; 0.5 come in a second.
    with server.channel() as channel:
        code, _, error = call_grpc(channel, CLASSIFY, key="key-s", request=CLASSIFY_TOKENS)
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert b"RetryInfo" in dict(error.trailing_metadata())["grpc-status-details-bin"]
    assert server.call_http("GET", "/v1/models", key="key-s")[0] == 200


def test_generated_tokens_are_owed_too(tmp_path):
    keys = "generous:key-g tokens_per_second=100\n"
    with SecureServer(tmp_path / "tokens", keys=keys, models=MODELS[1:]) as server:
        status, _, answer = complete(server, "key-g", "x", max_tokens=1000)
        assert status == 200, answer
        generated = answer["usage"]["completion_tokens"]
        status, headers, answer = complete(server, "key-g", "x")
        assert status == 429, answer
        assert int(headers["Retry-After"]) > (generated - 150) / 100 - 3


def expected_role(path):
    if path.startswith("/v2/repository/models/") or path in LOADS:
        return "key-c"
    if path.endswith("/stats") or path == "/metrics" or path in STATISTICS:
        return "key-m"
    infers = path.startswith(("/v1/", "/longview.v1.", *INFERENCE)) or \
        path.endswith(("/infer", "/ModelInfer", "/ModelStreamInfer"))
    lists = path.startswith(("/v1/models", "/longview.v1.ModelService/")) and \
        not path.endswith("Estimate")
    return "key-i" if infers and not lists else None


def test_every_http_route_asks_for_its_role(server):
    document = json.loads((ROOT / "server/http/assets/openapi.json").read_text())
    for path, verbs in document["paths"].items():
        url = path.replace("{m}", "nobody").replace("{v}", "1").replace("{id}", "nobody")
        for verb in verbs:
            for key in ("key-i", "key-c", "key-m", "key-a"):
                status, _, body = server.call_http(verb.upper(), url, key=key,
                                                   body="{}" if verb == "post" else None)
                refused = expected_role(path) not in (None, key) and key != "key-a"
                assert (status == 403) == refused, (verb, path, key, status, body)
                if refused:
                    error = json.loads(body)["error"]
                    message = error if isinstance(error, str) else error["message"]
                    assert "lacks the role" in message


def test_every_rpc_asks_for_its_role(server):
    with server.channel() as channel:
        for path, asks, answers in grpc_methods():
            if "Reflection" in path or path.endswith("/Watch"):
                continue
            for key in ("key-i", "key-c", "key-m", "key-a"):
                code, _, error = call_grpc(channel, path, asks, answers, key)
                refused = expected_role(path) not in (None, key) and key != "key-a"
                assert (code == grpc.StatusCode.PERMISSION_DENIED) == refused, (path, key, error)


def test_loads_and_unloads_say_who(server):
    for verb, key, code in (("unload", "key-i", None), ("unload", "key-c", "OK"),
                            ("load", "key-a", "OK")):
        path = f"/v2/repository/models/classifier/{verb}"
        status, _, body = server.call_http("POST", path, key=key)
        assert (status == 200) == (code == "OK"), body
    with server.channel() as channel:
        call_grpc(channel, "/longview.v1.ModelService/LoadModel", key="key-c",
                  request=b"\x0a\x06nobody")
    lines = [line for line in server.log_lines() if line["msg"] == "model control"]
    said = [(line["action"], line["model"], line["client"], line["code"], line["api"])
            for line in lines if line["model"] in ("classifier", "") and line["code"] != ""]
    for expected in (("unload", "classifier", "operator", "OK", "http"),
                     ("load", "classifier", "alice", "OK", "http"),
                     ("load", "", "operator", "NOT_FOUND", "grpc")):
        assert expected in said
    assert all(line["address"] == "127.0.0.1" for line in lines)
    assert "key-" not in server.log()


def test_a_web_page_does_not_control_models_over_grpc(server):
    with server.channel() as channel:
        for path in sorted(LOADS):
            name = b"\x0a\x06nobody" if "longview.v1" in path else b"\x12\x06nobody"
            for origin, expected in (("https://evil.example", grpc.StatusCode.PERMISSION_DENIED),
                                     (None, grpc.StatusCode.NOT_FOUND)):
                metadata = (("origin", origin),) if origin else ()
                code, _, error = call_grpc(channel, path, key="key-c", request=name,
                                           metadata=metadata)
                assert code == expected, (path, error)


def logged_clients(server, marker):
    return [line["client"] for line in server_lines(server)
            if line["msg"] == "request" and line["request_id"] == marker]


def server_lines(server):
    return [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]


def call_behind(server, forwarded, marker):
    """One call on each transport that says whom it comes from."""
    metadata = [("x-request-id", marker)] + [("x-forwarded-for", value) for value in forwarded]
    # This client's library sends the last of repeated entries alone; proxies send one list.
    joined = metadata[:1] + ([("x-forwarded-for", ", ".join(forwarded))] if forwarded else [])
    with grpc.insecure_channel(server.grpc) as channel:
        call_grpc(channel, "/inference.GRPCInferenceService/ServerMetadata", metadata=joined)
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=60) as raw:
        fields = "".join(f"{name}: {value}\r\n" for name, value in metadata)
        raw.sendall(f"GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"
                    .encode())
        while raw.recv(65536):
            pass
    wait_until(lambda: len(logged_clients(server, marker)) == 2, 10, "two lines of the log")
    return set(logged_clients(server, marker))


def test_only_trusted_proxies_say_whom_they_speak_for():
    with Server(MODELS[:1]) as open_to_all:
        assert call_behind(open_to_all, ["1.2.3.4"], "one") == {"127.0.0.1"}
    with Server(MODELS[:1], "--trusted_proxies=127.0.0.0/8,10.0.0.0/8") as behind:
        assert call_behind(behind, [], "none") == {"127.0.0.1"}
        assert call_behind(behind, ["1.2.3.4"], "one") == {"1.2.3.4"}
        assert call_behind(behind, ["6.6.6.6, 1.2.3.4, 10.0.0.7"], "forged") == {"1.2.3.4"}
        assert call_behind(behind, ["6.6.6.6", "1.2.3.4", "10.0.0.7"], "fields") == {"1.2.3.4"}
        assert call_behind(behind, ["2001:db8::7"], "six") == {"2001:db8::7"}
        assert call_behind(behind, ["not an address"], "junk") == {"127.0.0.1"}
    with Server(MODELS[:1], "--trusted_proxies=10.0.0.0/8") as elsewhere:
        assert call_behind(elsewhere, ["1.2.3.4"], "one") == {"127.0.0.1"}
