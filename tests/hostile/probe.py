"""An ordinary client during an attack: /livez and a short request, again and again.

    probe.py PORT    until stdin closes; then prints figures as JSON

A process of its own, so that the attacker's work is not measured with it.
"""

import http.client
import json
import sys
import threading
import time

SHORT = json.dumps({"model": "code-language", "text": "import os\n"}).encode()
PATIENCE = 30  # Seconds; an answer that takes longer is a failure.


class Looks:
    """Repeats one request; keeps the longest time and every failure."""

    def __init__(self, port, method, path, body, pause):
        self.port, self.method, self.path, self.body = port, method, path, body
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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(self.method, self.path, self.body)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.failures.append(f"{answer.status} {text[:200].decode(errors='replace')}")
        except OSError as error:
            self.failures.append(repr(error))
        finally:
            connection.close()
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
    port = int(sys.argv[1])
    livez = Looks(port, "GET", "/livez", None, 0.02)
    short = Looks(port, "POST", "/v1/classify", SHORT, 0.1)
    print("looking", flush=True)
    sys.stdin.read()
    print(json.dumps({"livez": livez.end(), "short": short.end()}))


if __name__ == "__main__":
    main()
