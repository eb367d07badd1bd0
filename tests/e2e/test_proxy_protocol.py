"""The PROXY protocol before both transports, plain and with TLS: hand-made headers and HAProxy."""

import contextlib
import json
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time

import grpc
import pytest

from certificates import Authority
from secure_server import SecureServer
from server_process import SERVER, wait_until

METADATA = "/inference.GRPCInferenceService/ServerMetadata"
TEXT = b"PROXY TCP4 203.0.113.7 192.0.2.1 40000 443\r\n"
UNKNOWN = b"PROXY UNKNOWN\r\n"
BINARY = b"\r\n\r\n\0\r\nQUIT\n"
FLAGS = ("--trusted_proxies=127.0.0.1,127.0.0.4", "--proxy_protocol")


def binary(client, rest=b""):
    addresses = socket.inet_pton(socket.AF_INET6, client) + bytes(15) + b"\x01"
    payload = addresses + struct.pack(">HH", 40000, 443) + rest
    return BINARY + b"\x21\x21" + struct.pack(">H", len(payload)) + payload


@pytest.fixture(scope="module", params=["plain", "tls"])
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    authority = Authority(folder) if request.param == "tls" else None
    with SecureServer(folder / "server", *FLAGS, "--max_connections_per_address=3",
                      authority=authority) as running:
        yield running


class Proxy:
    """A port of its own in front of another: each connection begins with `header`."""

    def __init__(self, port, header, source="127.0.0.1"):
        self.port_behind, self.header, self.source = port, header, source
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        behind = socket.create_connection(("127.0.0.1", self.port_behind),
                                          source_address=(self.source, 0))
        try:
            for at in range(0, len(self.header), 20):  # In pieces, as it may come.
                behind.sendall(self.header[at:at + 20])
                time.sleep(0.01)
        except OSError:
            pass
        back = threading.Thread(target=pump, args=(behind, client), daemon=True)
        back.start()
        pump(client, behind)
        back.join()
        client.close()
        behind.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.listener.close()


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # One end is gone, and so is the other.
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def http_request(server, port, marker, timeout=20):
    """The beginning of the status line; empty if the connection is closed instead."""
    return http_answer(server, port, marker, "/v2", timeout)[:12]


def http_answer(server, port, marker, path, timeout=20):
    head = (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"x-request-id: {marker}\r\n\r\n").encode()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as raw:
            context = server.tls_context()
            if context is not None:
                raw = context.wrap_socket(raw, server_hostname="localhost")
            with raw:
                raw.sendall(head)
                return b"".join(iter(lambda: raw.recv(1 << 16), b""))
    except (ConnectionError, ssl.SSLError):
        return b""


def grpc_request(server, port, marker, timeout=20):
    """The code of a call."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    target = f"localhost:{port}"
    channel = grpc.insecure_channel(target, options) if server.authority is None else (
        grpc.secure_channel(target, grpc.ssl_channel_credentials(server.authority.ca.read_bytes()),
                            options))
    with channel:
        try:
            channel.unary_unary(METADATA)(b"", timeout=timeout,
                                          metadata=(("x-request-id", marker),))
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            return error.code()


def clients(server, marker):
    return [line["client"] for line in server.log_lines()
            if line["msg"] == "request" and line["request_id"] == marker]


def both_requests(server, http_port, grpc_port, marker):
    """The clients that the log names."""
    assert http_request(server, http_port, marker) == b"HTTP/1.1 200"
    assert grpc_request(server, grpc_port, marker) == grpc.StatusCode.OK
    wait_until(lambda: len(clients(server, marker)) == 2, 10, "two lines of the log")
    return set(clients(server, marker))


@pytest.mark.parametrize("header, client", [
    (TEXT, "203.0.113.7"), (UNKNOWN, "127.0.0.1"), (binary("2001:db8::7"), "2001:db8::7"),
    (binary("2001:db8::8", rest=b"\x04\x03\xe8" + bytes(1000)), "2001:db8::8"),
    (BINARY + b"\x20\0\0\0", "127.0.0.1")], ids=["text", "unknown", "binary", "long", "local"])
def test_a_header_names_the_client(server, header, client):
    grpc_port = int(server.grpc.rsplit(":", 1)[1])
    with Proxy(server.http_port, header) as http, Proxy(grpc_port, header) as calls:
        marker = f"named-{abs(hash(header))}"
        assert both_requests(server, http.port, calls.port, marker) == {client}


@pytest.mark.parametrize("header", [b"", b"PROXY TCP4 1.2.3.4\r\n"], ids=["none", "malformed"])
def test_a_proxy_without_a_header_is_closed(server, header):
    grpc_port = int(server.grpc.rsplit(":", 1)[1])
    with Proxy(server.http_port, header) as http, Proxy(grpc_port, header) as calls:
        assert http_request(server, http.port, "without") == b""
        assert grpc_request(server, calls.port, "without", 3) != grpc.StatusCode.OK
        with Proxy(server.http_port, UNKNOWN) as scraper:
            counts = http_answer(server, scraper.port, "scrape", "/metrics")
    for transport in ("http", "grpc"):
        sample = f'longview_connections_ended_total{{reason="proxy_header",transport="{transport}"}}'
        assert sample in counts.decode()
    lines = [line for line in server.log_lines() if line.get("reason") == "proxy_header"]
    assert {line["transport"] for line in lines} == {"http", "grpc"}
    assert {line["client"] for line in lines} == {"127.0.0.1"}


def test_others_are_not_asked_for_one(server):
    grpc_port = int(server.grpc.rsplit(":", 1)[1])
    with Proxy(server.http_port, b"", "127.0.0.9") as http, \
            Proxy(grpc_port, b"", "127.0.0.9") as calls:
        assert both_requests(server, http.port, calls.port, "others") == {"127.0.0.9"}
    with Proxy(server.http_port, TEXT, "127.0.0.9") as forged:
        assert http_request(server, forged.port, "forged") != b"HTTP/1.1 200"
    assert clients(server, "forged") in ([], ["127.0.0.9"])


def test_limits_hold_for_clients_and_not_for_the_proxy(server):
    """Three connections of an address are allowed; a proxy's own may be more."""
    for port in (server.http_port, int(server.grpc.rsplit(":", 1)[1])):
        opened = []
        for header, source, most in ((TEXT, "127.0.0.1", 3), (UNKNOWN, "127.0.0.4", 8)):
            raws = []
            for _ in range(8):
                raw = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
                raw.sendall(header)
                raws.append(raw)
                time.sleep(0.02)
            opened += raws
            time.sleep(0.3)
            assert sum(is_open(raw) for raw in raws) == most, source
        for raw in opened:
            raw.close()


def is_open(raw):
    raw.setblocking(False)
    try:
        while data := raw.recv(65536):  # Its settings.
            pass
        return bool(data)
    except BlockingIOError:
        return True
    except OSError:
        return False


HAPROXY = """
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend http
  bind 127.0.0.1:{http}
  default_backend http
frontend grpc
  bind 127.0.0.1:{grpc}
  default_backend grpc
backend http
  server one 127.0.0.1:{http_behind} send-proxy
backend grpc
  server one 127.0.0.1:{grpc_behind} send-proxy-v2
"""


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="no haproxy")
def test_behind_haproxy(server, tmp_path):
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in free]
    for listener in free:
        listener.close()
    (tmp_path / "haproxy.cfg").write_text(HAPROXY.format(
        http=ports[0], grpc=ports[1], http_behind=server.http_port,
        grpc_behind=server.grpc.rsplit(":", 1)[1]))
    proxy = subprocess.Popen(["haproxy", "-db", "-f", tmp_path / "haproxy.cfg"])
    try:
        wait_until(lambda: http_request(server, ports[0], "up") == b"HTTP/1.1 200", 20, "haproxy")
        assert both_requests(server, *ports, "haproxy") == {"127.0.0.1"}
    finally:
        proxy.terminate()
        proxy.wait()


def test_the_flag_needs_proxies(tmp_path):
    done = subprocess.run([SERVER, "--proxy_protocol", "--print_config"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode != 0
    assert "trusted_proxies" in done.stderr, done.stderr
    shown = subprocess.run([SERVER, *FLAGS, "--print_config"], capture_output=True, text=True,
                           timeout=60, check=True)
    assert json.loads(shown.stdout)["proxy_protocol"] is True
