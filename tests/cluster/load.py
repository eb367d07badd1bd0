"""Open-loop calls to a release until the end of the input, each written down as a line of JSON:
{"kind", "at" (seconds of the clock), "seconds", "error" (null if the answer came and was right)}.

    load.py NAMESPACE FILE KIND=PERIOD... [--again]

Runs in the cluster's network. KIND: grpc and grpc-stream (round robin over the headless Service, with
the service config of deploy/balancing), rest and rest-stream (a connection per call, through the
Service); a call of it starts every PERIOD seconds, whatever became of those before. Every answer must
be the first one's equal. --again repeats REST calls that found no server, as a client with retries
does; the gRPC service config does the same for gRPC.
"""

import http.client
import json
import pathlib
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy"), str(ROOT / "tests/e2e")]

from rolling import Load, grpc_calls, http_calls, messages  # noqa: E402

TRIES = 8


class Journal:
    """Wraps calls so that each becomes a line. Safe from several threads."""

    def __init__(self, file):
        self._file, self._lock, self._expected = file, threading.Lock(), {}

    def noted(self, kind, call):
        def one():
            begun, error = time.time(), None
            try:
                answer = call()
                with self._lock:
                    expected = self._expected.setdefault(kind, answer)
                if answer != expected:
                    error = f"another answer: {answer!r} after {expected!r}"[:400]
            except Exception as failure:  # noqa: BLE001: every failure counts, whatever it is
                error = repr(failure)[:400]
            line = json.dumps({"kind": kind, "at": begun, "seconds": time.time() - begun,
                               "error": error})
            with self._lock:
                self._file.write(line + "\n")
                self._file.flush()
        return one


def again(call):
    """The call, repeated where no server took it or the one that did was gone."""
    def repeated():
        for left in reversed(range(TRIES)):
            try:
                return call()
            except (OSError, http.client.HTTPException):
                if not left:
                    raise
                time.sleep(0.5)
    return repeated


def main(namespace, path, *rates):
    host = f"{{}}.{namespace}.svc.cluster.local"
    with tempfile.TemporaryDirectory() as folder:
        channel, classify, generate = grpc_calls(f"dns:///{host.format('longview-pods')}:9000",
                                                 messages(folder))
    rest, rest_stream = http_calls(8080, host.format("longview"))
    calls = {"grpc": classify, "grpc-stream": generate, "rest": rest, "rest-stream": rest_stream}
    if "--again" in rates:
        calls["rest"] = again(rest)
    with open(path, "a", encoding="utf-8") as file:
        journal = Journal(file)
        loads = [Load(kind, float(period), journal.noted(kind, calls[kind]))
                 for kind, period in (rate.split("=") for rate in rates if "=" in rate)]
        sys.stdin.read()
        for load in loads:
            load.stop()
    channel.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
