"""The Python package against a server with keys and mutual TLS."""

import pathlib
import sys

import grpc
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from certificates import Authority  # noqa: E402
from secure_server import SecureServer  # noqa: E402


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(authority, tmp_path_factory):
    with SecureServer(tmp_path_factory.mktemp("mtls"), keys="search:a-key\n", authority=authority,
                      clients=authority) as running:
        yield running


def test_key_and_certificates_let_a_client_in(longview, server, authority):
    certificate, key = authority.issue("python-client")
    with longview.Client(server.grpc, ca=authority.ca, cert=certificate, key=key,
                         api_key="a-key") as client:
        assert [model.name for model in client.models()] == ["classifier"]
        assert client.classify("int main() {}", top_k=1).labels[0].name
    with longview.Client(server.grpc, ca=authority.ca, cert=certificate, key=key,
                         api_key="another") as client:
        with pytest.raises(longview.LongviewError) as error:
            client.models()
    assert error.value.code == grpc.StatusCode.UNAUTHENTICATED
    assert "another" not in str(error.value)


def test_without_a_certificate_there_is_no_connection(longview, server, authority):
    with longview.Client(server.grpc, ca=authority.ca, api_key="a-key", timeout=5) as client:
        with pytest.raises(longview.LongviewError) as error:
            client.models()
    assert error.value.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def test_half_an_identity_is_refused(longview, authority):
    with pytest.raises(ValueError):
        longview.Client("localhost:1", cert=authority.ca)
