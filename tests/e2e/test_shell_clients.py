"""Stock clients of the shell against the real binary: curl and grpc-health-probe."""

import json
import subprocess

import pytest

from certificates import Authority
from secure_server import SecureServer
from server_process import ROOT

SOURCE = ROOT / "kernels/span/plan.h"
TEXT = ["-H", "Content-Type: text/plain"]
CLASSIFY = "/v1/classify?model=code-language&top_k=1"
# What grpc-health-probe ends with.
SERVING, UNREACHABLE, REFUSED = 0, 2, 3


def curl(server, path, *flags, given=None):
    return subprocess.run(["curl", "--silent", "--show-error", *flags, server.url + path], input=given, text=True,
                          capture_output=True, timeout=120)


def name_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["labels"][0]["name"]


@pytest.mark.client("curl", "bodies of files, pipes and JSON; streams, statuses, kept connections")
class TestCurl:
    def test_files_and_pipes_of_any_kind(self, zoo_server):
        assert name_of(curl(zoo_server, CLASSIFY, "--data-binary", f"@{SOURCE}", *TEXT)) == "C++"
        source = SOURCE.read_text()
        for flags in (["--data-binary", "@-"], ["--data-binary", "@-", "-H", "Transfer-Encoding: chunked"],
                      ["--upload-file", "-", "--request", "POST"]):
            assert name_of(curl(zoo_server, CLASSIFY, *flags, *TEXT, given=source)) == "C++"
        body = json.dumps({"model": "code-language", "text": source, "top_k": 1})
        # As a form, which curl calls every body of -d.
        assert name_of(curl(zoo_server, "/v1/classify", "-d", body)) == "C++"
        assert name_of(curl(zoo_server, "/v1/classify", "-H", "Content-Type: application/json", "-d", body)) == "C++"

    def test_a_large_body_is_asked_for_first(self, zoo_server, tmp_path):
        """curl waits for a 100 before it sends more than a mebibyte."""
        large = tmp_path / "large.h"
        large.write_text(SOURCE.read_text() * 300)
        assert large.stat().st_size > 1 << 20
        done = curl(zoo_server, CLASSIFY + "&truncate=true", "--verbose", "--data-binary", f"@{large}", *TEXT)
        assert name_of(done) == "C++"
        assert "> Expect: 100-continue" in done.stderr and "< HTTP/1.1 100" in done.stderr

    def test_a_stream(self, zoo_server):
        body = json.dumps({"model": "code-lm", "prompt": "def main():", "stream": True, "max_tokens": 8,
                           "temperature": 0})
        done = curl(zoo_server, "/v1/completions", "--no-buffer", "--compressed", "-d", body)
        *events, last = [line.removeprefix("data: ") for line in done.stdout.splitlines() if line]
        assert last == "[DONE]"
        streamed = "".join(json.loads(event)["choices"][0]["text"] for event in events)
        whole = curl(zoo_server, "/v1/completions", "-d", json.dumps({**json.loads(body), "stream": False}))
        assert streamed == json.loads(whole.stdout)["choices"][0]["text"]

    def test_statuses(self, zoo_server):
        missing = curl(zoo_server, "/v1/models/no-such-model", "--fail-with-body")
        assert missing.returncode == 22 and "code-language" in json.loads(missing.stdout)["error"]["message"]
        assert curl(zoo_server, "/health", "--head", "--fail").stdout.startswith("HTTP/1.1 200")

    def test_one_connection_for_several_calls(self, zoo_server):
        told = ["-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n"]
        done = curl(zoo_server, "/readyz", *told, zoo_server.url + "/health", *told)
        assert done.stdout.splitlines() == ["200 1", "200 0"]


def probe(address, *flags):
    """Returns (what it ends with, what it says)."""
    done = subprocess.run(["grpc-health-probe", "-addr", address, "-connect-timeout", "20s", "-rpc-timeout", "60s",
                           *flags], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.client("grpc-health-probe", "health of the server and of models, plain, compressed, TLS, mutual TLS")
class TestHealthProbe:
    @pytest.mark.parametrize("service", ["", "readiness", "code-lm", "longview.v1.TextService"])
    def test_health(self, zoo_server, service):
        for flags in ([], ["-gzip"]):
            code, said = probe(zoo_server.grpc, "-service", service, *flags)
            assert (code, said.strip()) == (SERVING, "status: SERVING")

    def test_what_is_not_there(self, zoo_server):
        code, said = probe(zoo_server.grpc, "-service", "no-such-model")
        assert code == REFUSED and "NotFound" in said
        assert probe(zoo_server.grpc, "-tls", "-tls-no-verify", "-connect-timeout", "2s")[0] == UNREACHABLE

    def test_tls_needs_no_key(self, tmp_path):
        authority = Authority(tmp_path / "ca")
        certificate, key = authority.issue("probe")
        keys = "me:a-key-of-32-characters-for-tests-x\n"
        trusts = ["-tls", "-tls-ca-cert", authority.ca, "-tls-server-name", "localhost"]
        with SecureServer(tmp_path / "server", keys=keys, authority=authority) as server:
            assert probe(server.grpc, *trusts)[0] == SERVING
            assert probe(server.grpc, "-connect-timeout", "2s")[0] == UNREACHABLE
        with SecureServer(tmp_path / "mutual", authority=authority, clients=authority) as server:
            assert probe(server.grpc, *trusts, "-tls-client-cert", certificate, "-tls-client-key", key)[0] == SERVING
            assert probe(server.grpc, *trusts, "-connect-timeout", "2s")[0] == UNREACHABLE
