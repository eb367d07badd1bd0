"""kill -9 and SIGTERM, in every phase of a server's life."""

import json
import os
import signal
import threading
import time
import urllib.request

import pytest

from neighbours import CALLS, DOCUMENTS, PROMPTS, Neighbours, classify, complete, models, of_documents, record
from server_process import Server, wait_until

LEAVES = ("--drain_seconds=1", "--shutdown_seconds=20")


def test_kill_9_and_restart():
    """Nothing is left behind that a restart trips over; the answers are the same."""
    recorded = None
    for _ in range(3):
        with Server(models()) as server:
            recorded = recorded or record(server)
            with Neighbours(server, recorded, closing=True) as neighbours:
                neighbours.wait_for(6)
                server.process.send_signal(signal.SIGKILL)
                assert server.process.wait(10) == -signal.SIGKILL


def test_the_same_ports_at_once_after_kill_9():
    with Server(models()) as first:
        recorded = record(first)
        with Neighbours(first, recorded, closing=True) as neighbours:
            neighbours.wait_for(2)
            first.process.kill()
            first.process.wait(10)
        ports = f"--grpc_port={first.grpc_port}", f"--http_port={first.http_port}"
        with Server(models(), *ports) as second:
            assert record(second) == recorded


@pytest.mark.parametrize("milliseconds", [0, 5, 20, 50, 100, 200, 400, 800, 1600])
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_while_starting(milliseconds, sig):
    """Before flags are read, while models load, while they warm up: it leaves, with status 0 or by
    the signal itself where no handler was there yet."""
    with Server(models(), *LEAVES, wait=False) as server:
        time.sleep(milliseconds / 1000)
        server.process.send_signal(sig)
        begin = time.monotonic()
        assert server.process.wait(30) in (0, -sig)
        assert time.monotonic() - begin < 10


def test_idle():
    with Server(models(), *LEAVES) as server:
        record(server)
        assert server.stop(signal.SIGTERM, 15) == 0


def test_under_batches():
    """Checks that every admitted call is answered, and rightly."""
    with Server(models(), *LEAVES) as server:
        recorded = record(server)
        with Neighbours(server, recorded, closing=True) as neighbours:
            neighbours.wait_for(6)
            server.process.send_signal(signal.SIGTERM)
            neighbours.wait_for(2)
            assert server.process.wait(30) == 0


def pieces(server, tokens):
    """The pieces of a stream, as they come."""
    body = {"model": "code-lm", "prompt": "def main():", "max_tokens": tokens, "temperature": 0.8,
            "seed": 5, "stream": True, "ignore_eos": True}
    call = urllib.request.Request(f"{server.url}/v1/completions", json.dumps(body).encode())
    with urllib.request.urlopen(call, timeout=60) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])["choices"][0]["text"]


def test_under_streams():
    """A stream under way is written to its end; the text is the one of an undisturbed stream."""
    with Server(models(), "--drain_seconds=1", "--shutdown_seconds=60") as server:
        whole = "".join(pieces(server, 150))
        texts, begun = [[] for _ in range(4)], threading.Barrier(5)

        def listen(text):
            for index, piece in enumerate(pieces(server, 150)):
                text.append(piece)
                if index == 0:
                    begun.wait(30)

        threads = [threading.Thread(target=listen, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        begun.wait(30)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(90) == 0
        for thread in threads:
            thread.join(10)
        assert ["".join(text) for text in texts] == [whole] * 4


def test_endless_streams_end_with_the_grace():
    with Server(models(), "--drain_seconds=0", "--shutdown_seconds=2") as server:
        begun = threading.Event()

        def listen():
            try:
                for _ in pieces(server, 100_000):
                    begun.set()
            except (OSError, ValueError):
                pass

        threads = [threading.Thread(target=listen) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert begun.wait(30)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert time.monotonic() - begin < 12
        for thread in threads:
            thread.join(10)


def test_while_draining():
    """A second signal ends at once."""
    with Server(models(), "--drain_seconds=60") as server:
        recorded = record(server)
        with Neighbours(server, recorded, closing=True) as neighbours:
            neighbours.wait_for(2)
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.get("/readyz")[0] == 503)
            neighbours.wait_for(4)  # Draining serves on.
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(10) == 128 + signal.SIGTERM


def test_while_a_model_is_loaded_and_unloaded():
    with Server(models(), *LEAVES, "--allow_model_control=true") as server:
        recorded = record(server)
        stopped = threading.Event()

        def churn():
            while not stopped.is_set():
                try:
                    server.post("/v2/repository/models/code-lm/load", {})
                except OSError:
                    return

        threads = [threading.Thread(target=churn) for _ in range(3)]
        for thread in threads:
            thread.start()
        with Neighbours(server, recorded, closing=True) as neighbours:
            neighbours.wait_for(4)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) == 0
        stopped.set()
        for thread in threads:
            thread.join(30)


def test_standard_streams_are_gone():
    """Whoever started it closed its pipes: writing to them is not the end."""
    with Server(models()) as server:
        recorded = record(server)
        server.process.stdout.close()
        assert [classify(server, ids) for ids in DOCUMENTS] == of_documents(recorded)
        os.truncate(server.log_file.name, 0)
        assert complete(server, "def main():") == recorded[CALLS.index((complete, PROMPTS[0]))]
