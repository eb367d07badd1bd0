"""Open-loop calls to a release until the end of the input, each written down as a line of JSON:
{"kind", "at" (seconds of the clock), "seconds", "answer" (a digest), "repeated" (what the client was
told before it called again), "error" (null if the answer came and was right)}.

    load.py NAMESPACE FILE KIND=PERIOD... [--again] [--changes] [--tls=FOLDER]

Runs in the cluster's network; a call of a kind starts every PERIOD seconds, whatever became of those
before, and every answer must be the first one's equal.

    grpc, grpc-stream   round robin over the headless Service, with the service config of deploy/balancing
    rest, rest-stream   a connection per call, through the Service
    embed               as rest: a vector of a long text, a second or so of one core
    document            as rest: vectors of as many long texts as are half a minute's work

Refusals that say when are repeated then. --again repeats REST calls that found no server, as a client
with retries does; the gRPC service config does the same for gRPC.
--changes: answers may change. --tls: the folder's ca.pem, and client.pem with certificate and key, both
read by each call.
"""

import hashlib
import http.client
import json
import math
import pathlib
import ssl
import sys
import tempfile
import threading
import time

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/deploy"), str(ROOT / "tests/e2e")]

from rolling import Load, Refusal, grpc_calls, http_calls, messages, poster  # noqa: E402

TRIES = 40
DOCUMENT_SECONDS = 30
NO_SERVER = (OSError, http.client.HTTPException)


class Journal:
    """Wraps calls so that each becomes a line. Safe from several threads."""

    def __init__(self, file, changes=False):
        """file: without a buffer, so that others can write lines to it. changes: answers may differ."""
        self._file, self._changes = file, changes
        self._lock, self._expected = threading.Lock(), {}

    def noted(self, kind, call, passing):
        """passing: errors after which the call is made again, but for refusals that do not say when."""
        def one():
            begun, error, answer, repeated = time.time(), None, None, []
            for _ in range(TRIES):
                error = None
                try:
                    answer = call()
                    break
                except Exception as failure:  # noqa: BLE001: every failure counts, whatever it is
                    error = repr(failure)[:400]
                    pause = getattr(failure, "retry_after", 0.5)
                    if not isinstance(failure, passing) or pause is None:
                        break
                    repeated.append(error)
                    time.sleep(pause)
            with self._lock:
                if not error and not self._changes:
                    expected = self._expected.setdefault(kind, answer)
                    if answer != expected:
                        error = f"another answer: {answer!r} after {expected!r}"[:400]
                self._file.write(json.dumps({
                    "kind": kind, "at": begun, "seconds": time.time() - begun,
                    "answer": hashlib.sha256(repr(answer).encode()).hexdigest()[:8],
                    "repeated": repeated, "error": error}).encode() + b"\n")
        return one


def embeddings(post):
    """embed(COUNT): the vectors of that many long texts in one request."""
    source = "".join(path.read_text() for path in sorted((ROOT / "server").rglob("*.cc")))
    size = 40_000

    def embed(count=1):
        begins = [i * 39_989 % (len(source) - size) for i in range(count)]
        texts = [source[begin:begin + size] for begin in begins]
        answer = json.loads(post("/v1/embeddings", {"model": "code-search", "input": texts}))
        assert len(answer["data"]) == count
        return [one["embedding"] for one in answer["data"]]
    return embed


def seconds_of_a_text(embed):
    """What a long text takes a server that has nothing else to do and is warm."""
    embed()
    begun = time.monotonic()
    for _ in range(5):
        embed()
    return (time.monotonic() - begun) / 5


def texts_for(seconds, embed):
    """How many texts are so many seconds' work of a request."""
    embed()
    begun = time.monotonic()
    embed(8)
    return math.ceil(8 * seconds / (time.monotonic() - begun))


def document(embed):
    count = texts_for(DOCUMENT_SECONDS, embed)
    return lambda: embed(count)


def by_grpc(call):
    """The call; what is refused for a while ends as over REST, with the seconds that gRPC says."""
    def called():
        try:
            return call()
        except grpc.RpcError as error:
            pause = dict(error.trailing_metadata() or ()).get("grpc-retry-pushback-ms")
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or pause is None:
                raise
            raise Refusal(429, error.details(), float(pause) / 1000) from error
    return called


def rest_context(folder):
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "client.pem")
    return context


def grpc_credentials(folder):
    identity = (folder / "client.pem").read_bytes()
    at = identity.index(b"-----BEGIN PRIVATE KEY")
    return grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes(), identity[at:], identity[:at])


def typed_calls(target, tls):
    """(unary call, streamed call); with TLS a channel per call, for its certificates are those of then."""
    with tempfile.TemporaryDirectory() as folder:
        message = messages(folder)
    if not tls:
        return grpc_calls(target, message)[1:]

    def by_new_channel(which):
        def call():
            calls = grpc_calls(target, message, grpc_credentials(tls))
            with calls[0]:
                return calls[which]()
        return call
    return by_new_channel(1), by_new_channel(2)


def main(namespace, path, *arguments):
    options = dict(one.split("=") if "=" in one else (one, "") for one in arguments
                   if one.startswith("--"))
    rates = dict(one.split("=") for one in arguments if not one.startswith("--"))
    host = f"{{}}.{namespace}.svc.cluster.local"
    tls = pathlib.Path(options["--tls"]) if "--tls" in options else None
    context = (lambda: rest_context(tls)) if tls else None
    classify, generate = typed_calls(f"dns:///{host.format('longview-pods')}:9000", tls)
    rest, rest_stream = http_calls(poster(8080, host.format("longview"), context=context))
    embed = embeddings(poster(8080, host.format("longview"), 1200, context))
    calls = {"grpc": by_grpc(classify), "grpc-stream": by_grpc(generate), "rest": rest,
             "rest-stream": rest_stream, "embed": embed,
             "document": document(embed) if "document" in rates else None}
    passing = {"rest": (Refusal, *NO_SERVER)} if "--again" in options else {}
    with open(path, "ab", buffering=0) as file:
        journal = Journal(file, "--changes" in options)
        loads = [Load(kind, float(period), journal.noted(kind, calls[kind], passing.get(kind, Refusal)))
                 for kind, period in rates.items()]
        sys.stdin.read()
        for load in loads:
            load.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
