"""Ordinary clients during an attack: signs of life and a short request over HTTP and gRPC, again and again.

    probe.py PORT GRPC_ADDRESS    until stdin closes; then prints figures as JSON

A process of its own, so that the attacker's work is not measured with it.
"""

import http.client
import json
import sys
import threading
import time

import grpc

SHORT = json.dumps({"model": "code-language", "text": "import os\n"}).encode()
HEALTH = "/grpc.health.v1.Health/Check"
CLASSIFY = "/longview.v1.TextService/Classify"
# ClassifyRequest: model = 1, text = 3.
SHORT_MESSAGE = b"\x0a\x0dcode-language\x1a\x0aimport os\n"
PATIENCE = 30  # Seconds; an answer that takes longer is a failure.


class Failed(Exception):
    """An answer that says no."""


def over_http(port, method, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise Failed(f"{answer.status} {text[:200].decode(errors='replace')}")
    finally:
        connection.close()


def over_grpc(address, method, message):
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            channel.unary_unary(method)(message, timeout=PATIENCE)
        except grpc.RpcError as error:
            raise Failed(f"{error.code().name} {error.details()}"[:200]) from error


class Looks:
    """Repeats one request, each over a connection of its own; keeps the longest time and every failure."""

    def __init__(self, pause, ask, *given):
        self.ask, self.given = ask, given
        self.pause, self.longest, self.count, self.failures = pause, 0.0, 0, []
        self.since = None  # Begin of the look that lasts.
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        self.look()
        while not self.over.wait(self.pause):
            self.look()

    def look(self):
        self.since = time.monotonic()
        try:
            self.ask(*self.given)
        except Failed as error:
            self.failures.append(str(error))
        except OSError as error:
            self.failures.append(repr(error))
        self.count += 1
        self.longest = max(self.longest, time.monotonic() - self.since)
        self.since = None

    def end(self):
        self.over.set()
        self.thread.join(PATIENCE + 5)
        if self.since is not None:
            self.failures.append("no answer")
        return {"longest": self.longest, "count": self.count, "failures": self.failures[:5],
                "failed": len(self.failures)}


def main():
    port, address = int(sys.argv[1]), sys.argv[2]
    looks = {"livez": Looks(0.02, over_http, port, "GET", "/livez", None),
             "short": Looks(0.1, over_http, port, "POST", "/v1/classify", SHORT),
             "health": Looks(0.1, over_grpc, address, HEALTH, b""),
             "short_grpc": Looks(0.2, over_grpc, address, CLASSIFY, SHORT_MESSAGE)}
    print("looking", flush=True)
    sys.stdin.read()
    print(json.dumps({name: look.end() for name, look in looks.items()}))


if __name__ == "__main__":
    main()
