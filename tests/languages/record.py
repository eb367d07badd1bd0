"""Records what the programs of this folder send, as tests/e2e/recorded/CLIENT.CASE.http.

    .deps/clients/bin/python tests/languages/record.py [CLIENT...]

Each case runs by itself through a proxy that keeps the bytes of its first request. A key that stands in them is the
programs' own "-", and headers that tell of the machine are left out.
"""

import pathlib
import re
import socket
import sys
import threading

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).resolve().parents[1] / "e2e")]

import programs  # noqa: E402
from client_models import client_models_server  # noqa: E402
from http_bytes import request_length  # noqa: E402
from server_process import ROOT  # noqa: E402

RECORDED = ROOT / "tests/e2e/recorded"
# Headers that tell of the machine or of the moment.
LEFT_OUT = re.compile(rb"(?im)^(x-stainless-(os|os-version|arch|runtime-version|kotlin-version|read-timeout|timeout)|"
                      rb"traceparent|x-request-id|idempotency-key):.*\r\n")


class Proxy:
    """Passes connections on to a port and keeps what clients sent on each."""

    def __init__(self, port):
        self.target, self.sent = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            kept = bytearray()
            self.sent.append(kept)
            for source, target, keep in ((client, server, kept), (server, client, None)):
                threading.Thread(target=self.copy, args=(source, target, keep), daemon=True).start()

    @staticmethod
    def copy(source, target, keep):
        try:
            while data := source.recv(1 << 16):
                if keep is not None:
                    keep += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The other side has closed.

    def first_request(self):
        sent = next(bytes(kept) for kept in self.sent if kept)
        self.sent.clear()
        return sent[:request_length(sent)]


def cleaned(request):
    head, end, body = request.partition(b"\r\n\r\n")
    head = LEFT_OUT.sub(b"", head + b"\r\n")
    head = re.sub(rb"(?im)^(host): .*\r\n", rb"\1: localhost\r\n", head)
    return head + b"\r\n" + body if end else request


def main(clients):
    RECORDED.mkdir(exist_ok=True)
    with client_models_server() as server:
        for client in clients or programs.CLIENTS:
            if programs.is_grpc(client):
                continue  # HTTP/2 is not read line by line; the live ring has these.
            for case in programs.run(client, server.url):
                proxy = Proxy(server.http_port)
                programs.run(client, proxy.url, case)
                (RECORDED / f"{client}.{case}.http").write_bytes(cleaned(proxy.first_request()))


if __name__ == "__main__":
    main(sys.argv[1:])
