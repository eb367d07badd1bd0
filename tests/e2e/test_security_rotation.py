"""Keys and certificates exchanged under load: no call may fail."""

import contextlib
import ssl
import threading

import grpc
import pytest

from certificates import Authority, install
from secure_server import SecureServer, call_grpc, until

CLASSIFY = "/longview.v1.TextService/Classify"
REQUEST = b"\x22\x04\x00\x0a\x0b\x02"  # token_ids: 0, 10, 11, 2.
BODY = '{"token_ids": [0, 10, 11, 2]}'


class Load:
    """Calls over HTTP and gRPC, on new and on lasting connections, until it is stopped."""

    def __init__(self, server, roots=None, key=None, identity=None):
        self.server, self.roots, self.key, self.identity = server, roots, key, identity
        self.failures, self.calls = [], {"http": 0, "new channel": 0, "lasting channel": 0}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name, call)) for name, call in
                         (("http", self._http), ("new channel", self._new_channel))]
        self._threads.append(threading.Thread(target=self._lasting))

    def _run(self, name, call):
        while not self._stop.is_set():
            try:
                call()
                self.calls[name] += 1
            except Exception as error:  # pylint: disable=broad-except
                self.failures.append((name, repr(error)))
                return

    def _http(self):
        status, _, body = self.server.call_http("POST", "/v1/classify", key=self.key, body=BODY,
                                                roots=self.roots, identity=self.identity)
        assert status == 200, body

    def _rpc(self, channel):
        code, _, error = call_grpc(channel, CLASSIFY, key=self.key, request=REQUEST)
        assert code == grpc.StatusCode.OK, error

    def _new_channel(self):
        with self.server.channel(self.identity, self.roots) as channel:
            self._rpc(channel)

    def _lasting(self):
        with self.server.channel(self.identity, self.roots) as channel:
            self._run("lasting channel", lambda: self._rpc(channel))

    def go_on(self, more=2):
        """Returns when every kind of call has succeeded this often again."""
        wanted = {name: count + more for name, count in self.calls.items()}
        until(lambda: self.failures or all(self.calls[n] >= c for n, c in wanted.items()),
              "calls under load")
        assert not self.failures

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.failures


def test_keys_change_under_load(tmp_path):
    with SecureServer(tmp_path / "server", keys="search:first-key\n") as server:
        def accepted(key):
            return server.call_http("GET", "/v2", key=key)[0] == 200

        with Load(server, key="first-key") as load:
            load.go_on()
            keys = server.folder / "keys"
            install(b"search:first-key\nsearch:second-key\n", keys)
            until(lambda: accepted("second-key"), "the second key")
            load.key = "second-key"
            load.go_on()
            install(b"search:second-key\n", keys)
            until(lambda: not accepted("first-key"), "the end of the first key")
            load.go_on()
            for bad in (b"", b"# nobody\n", b"second-key\n"):
                seen = len(server.log_lines())
                install(bad, keys)
                until(lambda: any("old ones stay" in line["msg"]
                                  for line in server.log_lines()[seen:]), "a word about it")
                load.go_on()
            keys.unlink()
            load.go_on()
            install(b"search:third-key\nsearch:second-key\n", keys)
            until(lambda: accepted("third-key"), "the third key")
            load.go_on()
        assert not any(word in server.log() for word in ("first-key", "second-key", "third-key"))


@pytest.fixture
def authorities(tmp_path):
    return Authority(tmp_path, "old-authority"), Authority(tmp_path, "new-authority")


def served_certificate(server, roots, identity=None):
    """What a new HTTP connection is shown."""
    import socket
    context = server.tls_context(identity, roots)
    with socket.create_connection(("127.0.0.1", server.http_port)) as raw, \
            context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
        return ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True))


def test_certificates_change_under_load(authorities, tmp_path):
    old, new = authorities
    both = tmp_path / "both.pem"
    both.write_bytes(old.ca.read_bytes() + new.ca.read_bytes())
    with SecureServer(tmp_path / "server", authority=old) as server:
        with Load(server, roots=both) as load:
            for round_number, authority in enumerate((new, old, new)):
                load.go_on()
                server.authority = authority
                server.install_certificate(f"round-{round_number}")
                shown = (server.folder / "cert.pem").read_text().strip()
                until(lambda: served_certificate(server, both).strip() == shown,
                      "the new certificate")
            load.go_on()
        # gRPC has it too: who trusts the old authority only does not connect any more.
        for roots, code in ((new.ca, grpc.StatusCode.OK), (old.ca, grpc.StatusCode.UNAVAILABLE)):
            with server.channel(roots=roots) as channel:
                assert call_grpc(channel, CLASSIFY, request=REQUEST)[0] == code


def test_a_certificate_without_its_key_changes_nothing(authorities, tmp_path):
    old, new = authorities
    with SecureServer(tmp_path / "server", authority=old) as server:
        with Load(server) as load:
            load.go_on()
            before = served_certificate(server, old.ca)
            certificate, _ = new.issue("lonely")
            install(certificate, server.folder / "cert.pem")
            until(lambda: any("old ones stay" in line["msg"] for line in server.log_lines()),
                  "a word about it")
            load.go_on()
            assert served_certificate(server, old.ca) == before


def test_the_authority_of_clients_changes_under_load(authorities, tmp_path):
    old, new = authorities
    with SecureServer(tmp_path / "server", authority=old, clients=old) as server:
        def connects(identity):
            with contextlib.suppress(OSError):
                return server.call_http("GET", "/livez", identity=identity)[0] == 200
            return False

        first, second = old.issue("client"), new.issue("client")
        with Load(server, identity=first) as load:
            load.go_on()
            install(old.ca.read_bytes() + new.ca.read_bytes(), server.folder / "clients.pem")
            until(lambda: connects(second), "the second client")
            load.identity = second
            load.go_on()
            install(new.ca, server.folder / "clients.pem")
            until(lambda: not connects(first), "the end of the first client")
            load.go_on()
