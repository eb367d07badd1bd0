"""Spans at a collector, a log that nobody reads, and a log level that changes while serving."""

import json
import signal
import socket
import subprocess
import time

import grpc
import pytest

from certificates import Authority
from collector import Collector
from secure_server import SecureServer
from server_process import SERVER, ZOO, Server, wait_until

CLASSIFY = {"model": "code-language", "text": "import os\n"}
PARENT = "00f067aa0ba902b7"


def traceparent(trace, flags="01"):
    return {"traceparent": f"00-{trace}-{PARENT}-{flags}"}


@pytest.fixture(scope="module")
def collector():
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def traced(collector):
    with Server([ZOO], f"--otlp_endpoint=127.0.0.1:{collector.port}",
                "--trace_sample_ratio=0") as server:
        yield server


def test_a_call_is_one_server_span_with_its_parts(traced, collector):
    trace = "11111111111111111111111111111111"
    status, _ = traced.post_json("/v1/classify", CLASSIFY,
                                 headers={**traceparent(trace), "x-request-id": "traced-1"})
    assert status == 200
    wait_until(lambda: len(collector.trace(trace)) == 4, 10, "four spans")
    spans = collector.trace(trace)
    server = spans["/v1/classify"]
    assert server.kind == 2 and server.parent_span_id.hex() == PARENT
    about = {a.key: a.value.string_value or a.value.int_value for a in server.attributes}
    assert about["longview.request_id"] == "traced-1" and about["longview.code"] == "OK"
    assert about["longview.model"] == "code-language" and about["longview.tokens"] > 0
    for name in ("prepare", "queue", "compute"):
        part = spans[name]
        assert part.parent_span_id == server.span_id
        assert server.start_time_unix_nano <= part.start_time_unix_nano
        assert part.start_time_unix_nano <= part.end_time_unix_nano <= server.end_time_unix_nano
    resource = collector.spans[0][1]
    assert resource["service.name"] == "longview" and resource["service.version"]
    wait_until(lambda: traced.metric("longview_spans_exported_total") >= 4, 10, "the count")
    assert traced.metric("longview_spans_dropped_total") == 0


def test_a_stream_over_grpc_is_traced_until_its_end(traced, collector):
    trace = "22222222222222222222222222222222"
    with grpc.insecure_channel(traced.grpc) as channel:
        # GenerateRequest: model = 1, text = 3, max_tokens = 9.
        request = b"\x0a\x07code-lm\x1a\x04def \x48\x08"
        call = channel.unary_stream("/longview.v1.TextService/Generate")
        list(call(request, metadata=tuple(traceparent(trace).items()), timeout=60))
    wait_until(lambda: "stream" in collector.trace(trace), 10, "the span of the stream")
    spans = collector.trace(trace)
    assert {"Generate", "prepare", "queue", "compute", "stream"} == spans.keys()
    assert spans["stream"].end_time_unix_nano == spans["Generate"].end_time_unix_nano


def test_callers_and_the_ratio_decide(traced, collector):
    unsampled = "33333333333333333333333333333333"
    sampled = "44444444444444444444444444444444"
    before = len(collector.spans)
    traced.post_json("/v1/classify", CLASSIFY)  # The ratio is 0.
    traced.post_json("/v1/classify", CLASSIFY, headers=traceparent(unsampled, "00"))
    traced.get("/livez", headers=traceparent(sampled))  # Probes are no calls.
    traced.post_json("/v1/classify", {"model": "nobody"}, headers=traceparent(sampled))
    wait_until(lambda: collector.trace(sampled), 10, "the span of the failure")
    assert list(collector.trace(sampled)) == ["/v1/classify"]
    assert len(collector.spans) == before + 1


def test_a_collector_that_is_away_holds_up_nothing():
    with Server([ZOO], "--otlp_endpoint=127.0.0.1:1") as server:
        for _ in range(20):
            assert server.post_json("/v1/classify", CLASSIFY)[0] == 200
        lines = [json.loads(line) for line in server.log().splitlines()]
        traces = {line["trace_id"] for line in lines if line.get("msg") == "request"
                  and line["method"] == "/v1/classify"}
        assert len(traces) == 20
        start = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - start < 10


@pytest.mark.parametrize("path, inputs", [("/v1/embeddings", "input"), ("/embed", "inputs")])
def test_a_call_with_many_inputs_is_one_line(path, inputs):
    with Server([ZOO / "code-search"]) as server:
        body = {"model": "code-search", inputs: ["read a file", "sort a list", "open a socket"]}
        assert server.post_json(path, body)[0] == 200
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
        calls = [line for line in lines if line.get("msg") == "request" and line["method"] == path]
        assert [line["items"] for line in calls] == [3]


def test_a_stderr_that_nobody_reads_stops_nothing():
    process = subprocess.Popen([SERVER, "--grpc_port=0", "--http_port=0", "--log_format=json",
                                "--drain_seconds=0", ZOO],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server = Server.__new__(Server)
    server.process = process
    try:
        server.http_port = int(process.stdout.readline().rsplit("=", 1)[1])
        long_id = "x" * 60
        start = time.monotonic()
        # A pipe holds 64 KiB, the server a megabyte of lines twice.
        batch = 12000
        for _ in range(batch // 100):
            keep_alive(server, 100, long_id)
        assert server.metric("longview_log_lines_dropped_total") > 0
        assert server.get("/livez", timeout=5)[0] == 200
        assert server.post_json("/v1/classify", CLASSIFY)[0] == 200
        assert time.monotonic() - start < 60
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def keep_alive(server, count, request_id):
    """Many short requests over one connection."""
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    for _ in range(count):
        connection.request("GET", "/livez", headers={"x-request-id": request_id})
        connection.getresponse().read()
    connection.close()


def test_lines_of_the_grpc_library_are_lines_of_the_log(tmp_path):
    with SecureServer(tmp_path / "server", authority=Authority(tmp_path)) as server:
        with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=10) as raw:
            raw.sendall(b"no handshake at all\r\n" * 10)
            try:
                raw.recv(100)
            except OSError:
                pass
        wait_until(lambda: '"msg":"grpc"' in server.log(), 10, "the library's complaint")
        for line in server.log().splitlines():
            assert {"ts", "level", "msg"} <= json.loads(line).keys(), line


def test_hang_up_reads_the_log_level_again(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"log_level": "error"}))
    with Server([ZOO], f"--config={file}") as server:
        def logged(request_id):
            server.get("/livez", headers={"x-request-id": request_id})
            time.sleep(0.2)
            return request_id in server.log()

        assert not logged("first")
        file.write_text(json.dumps({"log_level": "info"}))
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "log level set" in server.log(), 10, "the new level")
        assert logged("second")
        file.write_text("{")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "log level not changed" in server.log(), 10, "the complaint")
        assert logged("third")
        assert server.process.poll() is None


def test_hang_up_without_a_config_file_leaves():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Under nohup it would be ignored.
    with Server([ZOO]) as server:
        signal.signal(signal.SIGHUP, before)
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(30) == 0
