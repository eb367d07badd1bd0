"""Bad requests over both transports: a clear error each, and the neighbours never notice."""

import asyncio
import json
import socket
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb

from goldens import expected, items, served_models, tensors
from server_process import GOLDEN, Server, wait_until

CASE = GOLDEN / "longformer/classification"
IDS = items(tensors(CASE / "inputs.safetensors"), "input_ids")[5].tolist()
WANTED = expected(tensors(CASE / "expected.safetensors"), "logits.5")
INFER = "/v2/models/classification/infer"
MAX_TOKENS = 1200  # max_position_embeddings - pad - 1


def body(**changes):
    tensor = {"name": "input_ids", "datatype": "INT64", "shape": [1, len(IDS)], "data": IDS}
    return {"inputs": [{**tensor, **changes}]}


def ids_of(n):
    return {"shape": [1, n], "data": [7] * n}


def neighbour_is_well(server):
    status, answer = server.post_json(INFER, body())
    assert status == 200, answer
    logits = [o for o in answer["outputs"] if o["name"] == "logits"][0]["data"]
    assert np.abs(np.array(logits) - WANTED).max() < 1e-4


BAD_JSON = [
    ("not JSON", "{", ["JSON"]),
    ("not an object", "[]", ["object"]),
    ("no inputs", {"inputs": []}, ["input"]),
    ("unknown input", body(name="inputs_id"), ["inputs_id", "input_ids"]),
    ("wrong datatype", body(datatype="FP32"), ["input_ids", "FP32", "INT64"]),
    ("unheard-of datatype", body(datatype="INT99"), ["INT99"]),
    ("shape against data", body(shape=[1, len(IDS) + 1]), ["input_ids", str(len(IDS))]),
    ("one dimension", body(shape=[len(IDS)]), ["input_ids", "shape"]),
    ("three dimensions", body(shape=[1, 1, len(IDS)]), ["input_ids", "shape"]),
    ("negative extent", body(shape=[1, -1]), ["input_ids", "-1"]),
    ("overflowing shape", body(shape=[2**62, 2**62]), ["input_ids", "shape"]),
    ("no items", body(shape=[0, 4], data=[]), ["input_ids"]),
    ("no tokens", body(shape=[1, 0], data=[]), ["input_ids", "0"]),
    ("id too large", body(shape=[1, 1], data=[10**6]), ["1000000", "input_ids"]),
    ("negative id", body(shape=[1, 1], data=[-1]), ["-1", "input_ids"]),
    ("fractional id", body(shape=[1, 1], data=[1.5]), ["input_ids"]),
    ("string for an id", body(shape=[1, 1], data=["x"]), ["input_ids"]),
    ("null for data", body(data=None), ["input_ids"]),
    ("one over the limit", body(**ids_of(MAX_TOKENS + 1)), [str(MAX_TOKENS + 1), str(MAX_TOKENS)]),
    ("unknown output", {**body(), "outputs": [{"name": "logit"}]}, ["logit"]),
    ("unknown parameter", {**body(), "parameters": {"tempreature": 1}}, ["tempreature"]),
    ("sequence parameter", {**body(), "parameters": {"sequence_id": 1}}, ["sequence_id"]),
    ("text without tokenizer", {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1],
                                            "data": ["hello"]}]}, ["text", "token"]),
    ("mask of another shape", {"inputs": [body()["inputs"][0], {
        "name": "attention_mask", "datatype": "INT64", "shape": [1, 2], "data": [1, 1]}]},
     ["attention_mask"]),
    ("mask not 0 or 1", {"inputs": [body()["inputs"][0], {
        "name": "attention_mask", "datatype": "INT64", "shape": [1, len(IDS)],
        "data": [2] * len(IDS)}]}, ["attention_mask", "2"]),
    ("the same input twice", {"inputs": body()["inputs"] * 2}, ["input_ids"]),
]


@pytest.mark.parametrize("given,fragments", [case[1:] for case in BAD_JSON],
                         ids=[case[0] for case in BAD_JSON])
def test_bad_json_is_400_and_says_why(golden_server, given, fragments):
    status, headers, answer = golden_server.post(INFER, given)
    assert status == 400, answer
    message = json.loads(answer)["error"]
    assert isinstance(message, str) and len(message) < 1000
    for fragment in fragments:
        assert fragment.lower() in message.lower()
    assert headers["x-request-id"]
    neighbour_is_well(golden_server)


def test_one_bad_item_of_many_is_named(golden_server):
    good = [5] * 4
    given = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [3, 4],
                         "data": good + [5, 5, 10**6, 5] + good}]}
    status, answer = golden_server.post_json(INFER, given)
    assert status == 400
    assert "1" in answer["error"] and "1000000" in answer["error"]


def test_the_limit_itself_is_served(golden_server):
    status, answer = golden_server.post_json(INFER, body(**ids_of(MAX_TOKENS)))
    assert status == 200, answer


def test_truncate_is_asked_for_and_reported(golden_server):
    status, answer = golden_server.post_json("/v1/classify", {
        "model": "text_classification", "text": "word " * 3000})
    assert status == 400 and "512" in answer["error"]["message"]
    status, answer = golden_server.post_json("/v1/classify", {
        "model": "text_classification", "text": "word " * 3000, "truncate": True})
    assert status == 200
    assert answer["usage"]["truncated_tokens"] > 0 and answer["usage"]["input_tokens"] == 512


@pytest.mark.parametrize("given,fragment", [
    ({"text": "x", "token_ids": [1]}, "token_ids"),
    ({}, "text"),
    ({"txet": "x"}, "txet"),
    ({"text": 7}, "text"),
    ({"text": "x", "top_k": -1}, "top_k"),
    ({"token_ids": [1] * 600}, "600"),
    ({"text": "x", "version": "9"}, "9"),
], ids=["text and tokens", "neither", "unknown member", "text a number", "negative top_k",
        "too long", "other version"])
def test_typed_requests(golden_server, given, fragment):
    status, answer = golden_server.post_json("/v1/classify",
                                             {"model": "text_classification", **given})
    assert status in (400, 404)
    error = answer["error"]
    assert fragment in error["message"]
    assert {"message", "type", "code", "param"} <= error.keys()


def test_statuses_of_lacks(golden_server):
    status, answer = golden_server.post_json("/v1/classify", {"model": "nobody", "text": "x"})
    assert status == 404 and "classification" in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["code"] == "model_not_found"
    status, headers, answer = golden_server.post(
        "/v1/answer", {"model": "text_classification", "text": "x", "question": "y"})
    assert status == 400 and headers["x-should-retry"] == "false"
    assert json.loads(answer)["error"]["code"] == "UNIMPLEMENTED"


def test_deadline(golden_server):
    status, headers, answer = golden_server.post(INFER, body(**ids_of(MAX_TOKENS)),
                                                 headers={"Grpc-Timeout": "1u"})
    assert status == 504 and headers["x-should-retry"] == "false", answer


def test_invalid_utf8(golden_server):
    for path, given in [("/v1/classify", b'{"model": "text_classification", "text": "\xff"}'),
                        (INFER, b'{"inputs": "\xc3\x28"}')]:
        assert golden_server.post(path, given)[0] == 400
    status, _, answer = golden_server.post("/v1/classify?model=text_classification", b"\xff\xfe",
                                           headers={"Content-Type": "text/plain"})
    assert status == 400 and b"UTF-8" in answer


def test_body_over_the_limit_is_413(golden_server):
    with socket.create_connection(("127.0.0.1", golden_server.http_port)) as raw:
        raw.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {100 << 20}\r\n"
                    "\r\n".encode())
        assert b" 413 " in raw.recv(4096)
    neighbour_is_well(golden_server)


def test_compressed_bomb_is_413(golden_server):
    import gzip
    bomb = gzip.compress(b" " * (100 << 20))
    status = golden_server.post(INFER, bomb, headers={"Content-Encoding": "gzip"})[0]
    assert status == 413
    assert golden_server.post(INFER, b"x", headers={"Content-Encoding": "br"})[0] == 415


def test_deep_and_duplicate_json(golden_server):
    assert golden_server.post(INFER, "[" * 100000)[0] == 400
    assert golden_server.post("/v1/classify", '{"a":' * 100000)[0] == 400
    neighbour_is_well(golden_server)


def test_slow_senders_do_not_block_others(golden_server):
    sockets = []
    for _ in range(50):
        raw = socket.create_connection(("127.0.0.1", golden_server.http_port))
        raw.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Le".encode())
        sockets.append(raw)
    start = time.monotonic()
    neighbour_is_well(golden_server)
    assert golden_server.get("/livez")[0] == 200
    assert time.monotonic() - start < 30
    for raw in sockets:
        raw.close()


def test_half_closed_connection_still_gets_its_answer(golden_server):
    payload = json.dumps(body()).encode()
    with socket.create_connection(("127.0.0.1", golden_server.http_port)) as raw:
        raw.sendall(f"POST {INFER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                    f"Content-Length: {len(payload)}\r\n\r\n".encode() + payload)
        received = b""
        while chunk := raw.recv(65536):
            received += chunk
    assert received.startswith(b"HTTP/1.1 200")


class TestGrpc:
    def stub_call(self, server, request, timeout=30):
        with grpc.insecure_channel(server.grpc) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                       request_serializer=lambda x: x if isinstance(x, bytes)
                                       else x.SerializeToString(),
                                       response_deserializer=pb.ModelInferResponse.FromString)
            return call(request, timeout=timeout)

    def request(self, **changes):
        request = pb.ModelInferRequest(model_name="classification")
        tensor = request.inputs.add(name="input_ids", datatype="INT64", shape=[1, len(IDS)])
        for key, value in changes.items():
            if key == "shape":
                tensor.ClearField("shape")
                tensor.shape.extend(value)
            elif key == "raw":
                request.raw_input_contents.append(value)
            elif key == "ids":
                tensor.contents.int64_contents.extend(value)
            else:
                setattr(tensor, key, value)
        return request

    RAW = np.array(IDS, np.int64).tobytes()

    @pytest.mark.parametrize("changes,fragment", [
        ({}, "input_ids"),
        ({"raw": RAW[:-1]}, "input_ids"),
        ({"raw": RAW + b"\0"}, "input_ids"),
        ({"raw": RAW, "datatype": "FP64"}, "FP64"),
        ({"raw": RAW, "ids": [1]}, "raw"),
        ({"raw": RAW, "shape": [2**40, 2**40]}, "shape"),
        ({"ids": IDS[:-1]}, "input_ids"),
    ], ids=["no contents", "a byte short", "a byte more", "wrong datatype", "raw and typed",
            "overflowing shape", "an id short"])
    def test_bad_tensors(self, golden_server, changes, fragment):
        with pytest.raises(grpc.RpcError) as caught:
            self.stub_call(golden_server, self.request(**changes))
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert fragment in caught.value.details()
        neighbour_is_well(golden_server)

    def test_more_raw_contents_than_inputs(self, golden_server):
        request = self.request(raw=self.RAW)
        request.raw_input_contents.append(b"")
        with pytest.raises(grpc.RpcError) as caught:
            self.stub_call(golden_server, request)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT

    def test_bytes_that_are_no_protobuf(self, golden_server):
        with pytest.raises(grpc.RpcError) as caught:
            self.stub_call(golden_server, b"\xff\xff\xff\xff garbage")
        assert caught.value.code() == grpc.StatusCode.INTERNAL
        neighbour_is_well(golden_server)

    def test_error_details(self, golden_server):
        with pytest.raises(grpc.RpcError) as caught:
            self.stub_call(golden_server, pb.ModelInferRequest(model_name="nobody"))
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        details = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
        assert b"google.rpc.ErrorInfo" in details and b"longview" in details

    def test_deadline(self, golden_server):
        """A batch of the longest documents takes far more than a millisecond on any machine."""
        items_of_batch = 64
        raw = np.full((items_of_batch, MAX_TOKENS), 7, np.int64).tobytes()
        request = self.request(shape=[items_of_batch, MAX_TOKENS], raw=raw)
        with pytest.raises(grpc.RpcError) as caught:
            self.stub_call(golden_server, request, timeout=0.001)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        neighbour_is_well(golden_server)

    def test_half_closed_stream_ends(self, golden_server):
        with grpc.insecure_channel(golden_server.grpc) as channel:
            stream = channel.stream_stream(
                "/inference.GRPCInferenceService/ModelStreamInfer",
                request_serializer=pb.ModelInferRequest.SerializeToString,
                response_deserializer=pb.ModelStreamInferResponse.FromString)
            assert list(stream(iter([]), timeout=10)) == []
            answers = list(stream(iter([self.request(raw=self.RAW)] * 3), timeout=30))
            assert len(answers) == 3 and not any(a.error_message for a in answers)


@pytest.mark.parametrize("calls", [10_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_cancelled_calls_leave_nothing_behind(calls):
    """Calls cancelled at random moments; then the server is as it was."""
    model = served_models("longformer")["classification"]

    async def storm(server, calls):
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                        request_serializer=pb.ModelInferRequest.SerializeToString,
                                        response_deserializer=pb.ModelInferResponse.FromString)
            request = TestGrpc().request(raw=TestGrpc.RAW)
            gate = asyncio.Semaphore(64)

            async def one(index):
                async with gate:
                    call = infer(request)
                    await asyncio.sleep((index % 7) * 0.0005)
                    call.cancel()
                    try:
                        await call
                    except (asyncio.CancelledError, grpc.RpcError):
                        pass

            await asyncio.gather(*(one(index) for index in range(calls)))

    with Server([f"classification={model}"], "--dtype=fp32", "--log_level=warning") as server:
        asyncio.run(storm(server, 10_000))  # Fills the allocator's pools once.
        before = server.resident_bytes()
        asyncio.run(storm(server, calls))
        wait_until(lambda: server.metric("longview_running_requests") == 0
                   and server.metric("longview_queued_requests") == 0, 30, "an idle server")
        neighbour_is_well(server)
        server.settles_below(before + (64 << 20))
        assert server.stop() == 0
