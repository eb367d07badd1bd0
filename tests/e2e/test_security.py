"""Keys and certificates on every endpoint of both transports; what stops the start."""

import http.client
import json
import socket
import ssl
import subprocess

import grpc
import pytest

from certificates import Authority
from secure_server import MODEL, REFLECTION, SecureServer, call_grpc, grpc_methods
from server_process import CLIENT, ROOT, SERVER

KEY = "correct-horse-battery"
KEYS = f"# who may call\nsearch:{KEY}\nreports:another-key\n"
OPEN_PATHS = {"/", "/health", "/livez", "/readyz", "/metrics", "/version", "/v2/health/live",
              "/v2/health/ready", "/api/version", "/v2/models/{m}/ready",
              "/v2/models/{m}/versions/{v}/ready"}
TEI_PATHS = ("/embed", "/predict", "/rerank", "/similarity")  # Errors in that server's shape.
OPEN_METHODS = {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                "/inference.GRPCInferenceService/ServerLive",
                "/inference.GRPCInferenceService/ServerReady",
                "/inference.GRPCInferenceService/ModelReady"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("client")


@pytest.fixture(scope="module", params=["plaintext", "tls", "mtls"])
def guarded(request, authority, identity, tmp_path_factory):
    """A server with keys, and how its clients connect."""
    tls = {"plaintext": {}, "tls": {"authority": authority},
           "mtls": {"authority": authority, "clients": authority}}[request.param]
    with SecureServer(tmp_path_factory.mktemp(request.param), "--admin_port=0", keys=KEYS,
                      **tls) as server:
        server.identity = identity if request.param == "mtls" else None
        yield server


def http_endpoints():
    document = json.loads((ROOT / "server/http/assets/openapi.json").read_text())
    return [(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs]


def test_every_http_endpoint_asks_for_the_key_but_the_open_ones(guarded):
    endpoints = http_endpoints()
    assert {path for _, path in endpoints} >= OPEN_PATHS
    for method, path in [*endpoints, ("GET", "/nowhere"), ("PUT", "/v1/models")]:
        url = path.replace("{m}", "nobody").replace("{v}", "1").replace("{id}", "nobody")
        body = "{}" if method == "POST" else None
        for key in (None, "wrong", KEY + "x", KEY[:-1]):
            status, headers, answer = guarded.call_http(method, url, key=key, body=body,
                                                        identity=guarded.identity)
            assert (status == 401) == (path not in OPEN_PATHS), (method, path, key, answer)
            if status == 401:
                assert headers["WWW-Authenticate"] == "Bearer" and headers["x-request-id"]
                error = json.loads(answer)["error"]
                assert isinstance(error, str) == path.startswith(("/v2", "/api", *TEI_PATHS))
                if isinstance(error, dict):
                    assert error["type"] == "authentication_error"
                    assert error["code"] == "UNAUTHENTICATED"
        status, _, answer = guarded.call_http(method, url, key=KEY, body=body,
                                              identity=guarded.identity)
        assert status != 401, (method, path, answer)


def test_every_rpc_asks_for_the_key_but_the_open_ones(guarded):
    methods = grpc_methods()
    assert {path for path, _, _ in methods} >= OPEN_METHODS
    with guarded.channel(guarded.identity) as channel:
        for path, asks, answers in methods:
            request = b"\x3a\x01*" if path.startswith(REFLECTION) else b""
            for key in (None, "wrong", KEY + "x"):
                code, _, error = call_grpc(channel, path, asks, answers, key, request)
                refused = code == grpc.StatusCode.UNAUTHENTICATED
                assert refused == (path not in OPEN_METHODS), (path, key, code, error)
                if refused:
                    sent = dict(error.trailing_metadata())
                    assert b"longview" in sent["grpc-status-details-bin"], path
                    assert dict(error.initial_metadata())["x-request-id"], path
            code, answer, error = call_grpc(channel, path, asks, answers, KEY, request)
            assert code != grpc.StatusCode.UNAUTHENTICATED, (path, error)
            if path.startswith(REFLECTION):
                assert b"longview.v1.TextService" in answer


def test_refused_calls_are_counted_and_cost_no_inference(guarded):
    def refused():
        text = guarded.call_http("GET", "/metrics", identity=guarded.identity)[2].decode()
        lines = [line for line in text.splitlines()
                 if line.startswith('longview_rejected_total{reason="auth"}')]
        return float(lines[0].split()[-1]) if lines else 0.0

    before = refused()
    guarded.call_http("POST", "/v1/classify", body='{"text": "x"}', identity=guarded.identity)
    with guarded.channel(guarded.identity) as channel:
        call_grpc(channel, "/longview.v1.TextService/Classify", key="wrong")
    assert refused() == before + 2


def test_a_body_is_not_awaited_from_a_caller_without_a_key(guarded):
    status, _, _ = guarded.call_http("POST", "/v1/classify", identity=guarded.identity,
                                     headers={"Content-Length": "1000000"})
    assert status == 401


def test_the_admin_port_is_plaintext_and_has_three_pages(guarded):
    port = guarded.ports()["admin"]

    def get(path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    assert get("/livez") == (200, b'{"live":true}')
    assert get("/readyz") == (200, b'{"ready":true}')
    status, body = get("/metrics")
    assert status == 200 and b"longview_request_duration_seconds" in body
    for _, path in http_endpoints():
        if path not in ("/livez", "/readyz", "/metrics"):
            assert get(path)[0] == 404, path
    assert get("/livez", "POST")[0] == 405


def test_certificates_decide_who_connects(authority, identity, tmp_path, tmp_path_factory):
    stranger = Authority(tmp_path_factory.mktemp("stranger"), "stranger")
    unknown = stranger.issue("client")
    with SecureServer(tmp_path / "mtls", authority=authority, clients=authority) as server:
        assert server.call_http("GET", "/livez", identity=identity)[0] == 200
        for shown, roots in ((None, None), (unknown, None), (identity, stranger.ca)):
            # A refused client learns of it while it connects or when it reads.
            with pytest.raises((ssl.SSLError, OSError)):
                server.call_http("GET", "/livez", identity=shown, roots=roots)
            with server.channel(shown, roots) as channel:
                code, _, _ = call_grpc(channel, "/inference.GRPCInferenceService/ServerLive")
            assert code == grpc.StatusCode.UNAVAILABLE
        with server.channel(identity) as channel:
            code, _, _ = call_grpc(channel, "/inference.GRPCInferenceService/ServerLive")
        assert code == grpc.StatusCode.OK


def test_plaintext_callers_of_a_tls_server_get_nothing(authority, tmp_path):
    with SecureServer(tmp_path / "tls", authority=authority) as server:
        with pytest.raises(OSError):
            server.get("/livez")
        with grpc.insecure_channel(server.grpc) as channel:
            code, _, _ = call_grpc(channel, "/inference.GRPCInferenceService/ServerLive")
        assert code == grpc.StatusCode.UNAVAILABLE
        assert server.call_http("GET", "/livez")[0] == 200
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = server.tls_context()
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2", "http/1.1"])
            with socket.create_connection(("127.0.0.1", server.http_port)) as raw, \
                    context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
                assert secured.selected_alpn_protocol() == "http/1.1"


def refusal(*flags):
    """(exit status, last line) of a server that should not start."""
    done = subprocess.run([str(SERVER), "--grpc_port=0", "--http_port=0", *map(str, flags), MODEL],
                          capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("mode", [(), ("--validate_config",)])
def test_bad_files_stop_the_start_and_are_named(authority, tmp_path, mode):
    certificate, key = authority.issue("good")
    _, other_key = authority.issue("other")
    keys = tmp_path / "keys"
    keys.write_text("# nobody\n")
    line = tmp_path / "line"
    line.write_text(f"search:{KEY}\nno-colon-{KEY}\n")
    for flags, fragment in (
            ([f"--tls_cert={tmp_path}/none.pem", f"--tls_key={key}"], "none.pem"),
            ([f"--tls_cert={certificate}", f"--tls_key={other_key}"], "not the key of"),
            ([f"--tls_cert={key}", f"--tls_key={key}"], "tls_cert"),
            ([f"--tls_cert={certificate}", f"--tls_key={key}", f"--tls_client_ca={key}"],
             "tls_client_ca"),
            ([f"--api_keys_file={tmp_path}/none"], f"{tmp_path}/none"),
            ([f"--api_keys_file={keys}"], "holds no key"),
            ([f"--api_keys_file={line}"], "line 2")):
        status, last = refusal(*mode, *flags)
        assert status == 1 and fragment in last, (flags, status, last)
        assert KEY not in last


def test_half_of_what_belongs_together_exits_2(authority, tmp_path):
    certificate, key = authority.issue("half")
    for flags, fragment in (([f"--tls_cert={certificate}"], "--tls_key"),
                            ([f"--tls_key={key}"], "--tls_cert"),
                            ([f"--tls_client_ca={certificate}"], "--tls_client_ca"),
                            (["--admin_port=70000"], "--admin_port")):
        status, last = refusal(*flags)
        assert status == 2 and fragment in last, (flags, status, last)


def test_the_configuration_names_files_and_shows_no_key(authority, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(KEYS)
    done = subprocess.run([str(SERVER), "--print_config", f"--api_keys_file={keys}", MODEL],
                          capture_output=True, text=True, timeout=120)
    config = json.loads(done.stdout)
    assert config["api_keys_file"] == str(keys) and config["allow_model_control"] is True
    assert KEY not in done.stdout + done.stderr


def test_the_command_line_brings_key_and_certificates(guarded):
    def run(*flags):
        return subprocess.run([str(CLIENT), *flags, "--server", guarded.grpc],
                              capture_output=True, text=True, timeout=120)

    tls = []
    if guarded.authority:
        tls += ["--ca", str(guarded.authority.ca)]
    if guarded.identity:
        tls += ["--cert", str(guarded.identity[0]), "--key", str(guarded.identity[1])]
    with_key = run("status", *tls, "--api_key", KEY)
    assert with_key.returncode == 0 and "ready" in with_key.stdout, with_key.stderr
    without = run("status", *tls)
    assert without.returncode == 0 and "ready" in without.stdout, without.stderr
    assert run("models", *tls, "--api_key", KEY).stdout.startswith("classifier")
    refused = run("models", *tls, "--api_key", "wrong-key-1")
    assert refused.returncode == 1 and "UNAUTHENTICATED" in refused.stderr
    assert "wrong-key-1" not in refused.stderr + refused.stdout
    if guarded.authority:
        assert run("models", "--timeout", "2", "--api_key", KEY).returncode == 3
    if guarded.identity:
        assert run("models", *tls[:2], "--timeout", "2", "--api_key", KEY).returncode == 3
