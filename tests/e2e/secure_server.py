"""A server with keys, TLS or both, and the two plainest clients for it."""

import http.client
import json
import re
import ssl

import grpc

from certificates import install
from server_process import ROOT, ZOO, Server, wait_until

MODEL = ZOO / "code-language"
REFLECTION = "/grpc.reflection."  # Either version.
RELOAD_SECONDS = 60  # Patience; it takes about one.


class SecureServer(Server):
    """Serves one classifier as `classifier`, unless `models` says otherwise.

    keys: the text of the key file. authority: signs the server's certificate (files cert.pem and
    key.pem in `folder`). clients: the authority that must have signed clients (file clients.pem).
    """

    def __init__(self, folder, *flags, keys=None, authority=None, clients=None,
                 models=None):
        self.folder, self.authority = folder, authority
        folder.mkdir(exist_ok=True)
        flags = list(flags)
        if keys is not None:
            (folder / "keys").write_text(keys)
            flags.append(f"--api_keys_file={folder / 'keys'}")
        if authority is not None:
            self.install_certificate("server")
            flags += [f"--tls_cert={folder / 'cert.pem'}", f"--tls_key={folder / 'key.pem'}"]
        if clients is not None:
            install(clients.ca, folder / "clients.pem")
            flags.append(f"--tls_client_ca={folder / 'clients.pem'}")
        super().__init__(models or [f"classifier={MODEL}"], *flags)

    def install_certificate(self, name):
        """A new certificate of the same authority: first one file, then the other."""
        certificate, key = self.authority.issue(name)
        install(certificate, self.folder / "cert.pem")
        install(key, self.folder / "key.pem")

    def log_lines(self):
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def ports(self):
        return next(line for line in self.log_lines() if line["msg"] == "listening")

    def tls_context(self, identity=None, roots=None):
        """What an HTTP client trusts and shows; None without TLS."""
        if self.authority is None:
            return None
        context = ssl.create_default_context(cafile=roots or self.authority.ca)
        if identity:
            context.load_cert_chain(*identity)
        return context

    def call_http(self, method, path, key=None, identity=None, roots=None, body=None, headers=()):
        """(status, headers, body) over a connection of its own."""
        context = self.tls_context(identity, roots)
        connection = (http.client.HTTPSConnection("127.0.0.1", self.http_port, context=context,
                                                  timeout=60)
                      if context else http.client.HTTPConnection("127.0.0.1", self.http_port,
                                                                 timeout=60))
        sent = dict(headers)
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def channel(self, identity=None, roots=None):
        options = [("grpc.use_local_subchannel_pool", 1)]
        if self.authority is None:
            return grpc.insecure_channel(self.grpc, options)
        key = certificate = None
        if identity:
            certificate, key = (path.read_bytes() for path in identity)
        credentials = grpc.ssl_channel_credentials((roots or self.authority.ca).read_bytes(), key,
                                                   certificate)
        return grpc.secure_channel(self.grpc, credentials, options)


def bearer(key):
    return (("authorization", f"Bearer {key}"),) if key is not None else ()


def grpc_methods():
    """(path, client streams, server streams) of every method that is served."""
    methods = []
    for proto in sorted((ROOT / "proto").rglob("*.proto")):
        if "opentelemetry" in proto.parts:
            continue  # A service that is called.
        text = proto.read_text()
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)[1]
        for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", text, re.M | re.S):
            for name, asks, answers in re.findall(
                    r"rpc (\w+)\((stream )?[\w.]+\) returns \((stream )?[\w.]+\)", body):
                methods.append((f"/{package}.{service}/{name}", bool(asks), bool(answers)))
    return methods


def call_grpc(channel, path, asks=False, answers=False, key=None, request=b"", metadata=()):
    """The status code of one call, its first answer (bytes) and the RpcError or None.

    Requests that stream end after one message; streams of answers are left after the first.
    """
    kind = {(False, False): channel.unary_unary, (False, True): channel.unary_stream,
            (True, False): channel.stream_unary, (True, True): channel.stream_stream}
    call = kind[asks, answers](path)
    given = iter([request]) if asks else request
    try:
        result = call(given, timeout=60, metadata=bearer(key) + tuple(metadata))
        if answers:
            stream, result = result, next(result, b"")
            stream.cancel()
        return grpc.StatusCode.OK, result, None
    except grpc.RpcError as error:
        return error.code(), b"", error


def until(condition, what):
    wait_until(condition, RELOAD_SECONDS, what)
