"""What callers send goes nowhere: no content in logs, metrics and errors, and never a key."""

import json
import random
import string

import pytest

from secure_server import SecureServer, bearer

KEY = "KEYcanary" + "".join(random.choices(string.ascii_letters, k=31))
LONGEST = 64  # Of a value that an error message quotes.


def canary():
    """Long enough that a part of it over the limit can be told from what may be quoted."""
    return "".join(random.choices(string.ascii_letters + string.digits, k=120))


def leaked(secret, text, length):
    return [secret[i:i + length] for i in range(len(secret) - length + 1)
            if secret[i:i + length] in text]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with SecureServer(tmp_path_factory.mktemp("private"), "--log_level=debug",
                      keys=f"search:{KEY}\n") as running:
        yield running


def requests(secret):
    """(method, path, headers, body) with the secret in every place that a caller fills."""
    text = json.dumps({"text": secret})
    part = (f'--b\r\nContent-Disposition: form-data; name="text"; filename="{secret}.txt"\r\n\r\n'
            f"{secret}\r\n--b--\r\n")
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [secret]}
    yield "POST", "/v1/classify", {}, text
    yield "POST", "/v1/classify", {"x-request-id": secret}, text
    yield "POST", "/v1/classify", {"User-Agent": secret, "x-other": secret}, text
    for header in ("Grpc-Timeout", "Content-Encoding", "Expect", "traceparent", "Content-Type",
                   "Inference-Header-Content-Length"):
        yield "POST", "/v1/classify", {header: secret}, text
    yield "POST", "/v1/classify", form, part
    yield "POST", "/v1/detect", form, part.replace('name="text"', 'name="image"')
    yield "POST", f"/v1/classify?{secret}={secret}", {"Content-Type": "text/plain"}, secret
    yield "POST", f"/v1/classify?model={secret}", {"Content-Type": "text/plain"}, secret
    for field in ("model", "version", "token_ids", "image", "text_pair", "top_k", secret):
        yield "POST", "/v1/classify", {}, json.dumps({"text": secret, field: secret})
    yield "POST", "/v1/classify", {}, secret
    yield "POST", "/v1/completions", {}, json.dumps({"model": secret, "prompt": secret})
    yield "POST", "/v1/completions", {}, json.dumps({"prompt": secret, "stop": [secret]})
    yield "POST", "/v1/embeddings", {}, json.dumps({"input": secret, "encoding_format": secret})
    yield "POST", "/v2/models/classifier/infer", {}, json.dumps({"id": secret, "inputs": [tensor]})
    for change in ({"name": secret}, {"datatype": secret}, {"shape": [secret]}):
        yield "POST", "/v2/models/classifier/infer", {}, json.dumps({"inputs": [tensor | change]})
    yield "POST", "/v2/models/classifier/infer", {}, json.dumps(
        {"inputs": [tensor], "outputs": [{"name": secret}], "parameters": {secret: secret}})
    yield "POST", f"/v2/models/{secret}/infer", {}, json.dumps({"inputs": [tensor]})
    yield "POST", f"/v2/repository/models/{secret}/load", {}, json.dumps({"parameters": {}})
    yield "GET", f"/{secret}", {}, None
    yield "PATCH", "/v1/models", {"x-request-id": secret}, None


def test_content_goes_nowhere(server):
    answered = 0
    for method, path, headers, body in requests("SECRET"):
        secret = canary()
        place = [item.replace("SECRET", secret) if item else item for item in (path, body)]
        sent = {name: value.replace("SECRET", secret) for name, value in headers.items()}
        status, _, answer = server.call_http(method, place[0], key=KEY, headers=sent,
                                             body=place[1])
        answered += status == 200
        where = (method, path, headers, body, status)
        if status != 200:
            assert not leaked(secret, answer.decode(errors="replace"), LONGEST + 1), where
        assert not leaked(secret, server.call_http("GET", "/metrics")[2].decode(), 8), where
        # The caller chose the request id for the log.
        limit = LONGEST + 1 if "x-request-id" in headers else 8
        quoted = [line for line in server.log_lines() if leaked(secret, json.dumps(line), limit)]
        assert not quoted, (where, quoted)
    assert answered >= 3


def test_a_key_goes_nowhere(server):
    wrong = "WRONGcanary" + "".join(random.choices(string.ascii_letters, k=29))
    text = json.dumps({"text": "some text"})
    for header in (f"Bearer {wrong}", f"Basic {wrong}", wrong, f"Bearer {KEY} {KEY}",
                   f"Bearer {KEY}", f"bearer {KEY}"):
        status, _, answer = server.call_http("POST", "/v1/classify", body=text,
                                             headers={"Authorization": header})
        assert status == (200 if header.endswith(f"earer {KEY}") else 401)
        assert not leaked(KEY, answer.decode(), 8) and not leaked(wrong, answer.decode(), 8)
    with server.channel() as channel:
        import grpc
        for metadata in (bearer(wrong), bearer(KEY)):
            call = channel.unary_unary("/longview.v1.TextService/Classify")
            with pytest.raises(grpc.RpcError) as error:
                call(b"", metadata=metadata, timeout=60)
            said = error.value.details() + repr(error.value.trailing_metadata())
            assert not leaked(KEY, said, 8) and not leaked(wrong, said, 8)
    metrics = server.call_http("GET", "/metrics")[2].decode()
    for text in (server.log(), metrics):
        assert not leaked(KEY, text, 8) and not leaked(wrong, text, 8)


def test_log_lines_carry_request_id_and_trace(server):
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    parent = f"00-{trace}-{span}-01"
    body = json.dumps({"text": "some text"})
    _, headers, _ = server.call_http("POST", "/v1/classify", key=KEY, body=body, headers={
        "x-request-id": "http-1", "traceparent": parent})
    assert headers["x-request-id"] == "http-1"
    with server.channel() as channel:
        call = channel.unary_unary("/longview.v1.ModelService/ListModels").with_call(
            b"", timeout=60, metadata=bearer(KEY) + (("x-request-id", "grpc-1"),
                                                     ("traceparent", parent)))[1]
        assert dict(call.initial_metadata())["x-request-id"] == "grpc-1"
    server.call_http("POST", "/v1/classify", key=KEY, body=body,
                     headers={"x-request-id": "http-2", "traceparent": "00-junk"})
    lines = {line["request_id"]: line for line in server.log_lines() if "request_id" in line}
    for request_id, api, method in (("http-1", "http", "/v1/classify"),
                                    ("grpc-1", "grpc", "ListModels")):
        line = lines[request_id]
        assert (line["trace_id"], line["parent_id"]) == (trace, span)
        assert (line["api"], line["method"], line["code"]) == (api, method, "OK")
        assert line["seconds"] >= 0
    assert lines["http-1"]["model"] == "classifier" and lines["http-1"]["tokens"] > 0
    assert "trace_id" not in lines["http-2"]
