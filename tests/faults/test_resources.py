"""A machine that runs out of descriptors, disk or memory."""

import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import urllib.request

import grpc
import pytest

import server_process
from neighbours import DOCUMENTS, Neighbours, classify, models, of_documents, over_grpc, record
from preload import Switch
from server_process import SERVER, Server, wait_until
from wire import field


def wrapped(monkeypatch, folder, script):
    """Servers begin with `script`, a shell line that ends in the program ("$@")."""
    wrapper = folder / "server.sh"
    wrapper.write_text(f'#!/bin/sh\nset -- "{SERVER}" "$@"\n{script}\n')
    wrapper.chmod(0o700)
    monkeypatch.setattr(server_process, "SERVER", wrapper)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_descriptors_run_out(monkeypatch, tmp_path):
    """More connections than descriptors, on either port: who is being answered is answered to the
    end (idle connections make room), and once the crowd leaves both ports take calls again."""
    wrapped(monkeypatch, tmp_path, 'ulimit -n 300; exec "$@"')
    with Server(models()) as server:
        recorded, idle = record(server), descriptors(server)
        call = urllib.request.Request(f"{server.url}/v1/completions", json.dumps({
            "model": "code-lm", "prompt": "a", "max_tokens": 1500, "seed": 3, "stream": True,
            "ignore_eos": True,
            "temperature": 0.8}).encode())
        crowd = []
        with urllib.request.urlopen(call, timeout=60) as answer:
            assert answer.readline().startswith(b"data: {")
            for port in (server.http_port, server.grpc_port):
                for _ in range(400):
                    member = socket.socket()
                    member.settimeout(5)
                    member.connect(("127.0.0.1", port))
                    crowd.append(member)
            assert answer.read().rstrip().endswith(b"data: [DONE]")
        assert server.process.poll() is None
        for member in crowd:
            member.close()
        wait_until(lambda: descriptors(server) <= idle + 10, 60, "the crowd's descriptors given back")
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(6)
        live = subprocess.run(["grpcurl", "-plaintext", "-max-time", "20", server.grpc,
                               "grpc.health.v1.Health/Check"], capture_output=True, text=True)
        assert "SERVING" in live.stdout, live


FULL_TMP = """exec unshare --mount sh -c '
  mount -t tmpfs -o size=4k none /tmp && { head -c 8192 /dev/zero >/tmp/full 2>/dev/null; exec "$@"; }
' sh "$@\""""


@pytest.mark.skipif(subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL)
                    .returncode != 0, reason="needs a mount of its own (root)")
def test_full_tmp(tmp_path, monkeypatch):
    """Serving and loading need no temporary file."""
    with Server(models()) as server:
        recorded = record(server)
    wrapped(monkeypatch, tmp_path, FULL_TMP)
    with Server(models(), "--allow_model_control=true") as server:
        tmp = pathlib.Path(f"/proc/{server.process.pid}/root/tmp")
        assert os.listdir(tmp) == ["full"]
        with pytest.raises(OSError):
            (tmp / "more").write_bytes(bytes(4096))
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(4)
            assert server.post("/v2/repository/models/classifier/load", {})[0] == 200
            neighbours.wait_for(4)
        assert record(server) == recorded
        assert server.stop() == 0


def test_log_on_a_full_device():
    with open("/dev/full", "w") as full, subprocess.Popen(
            [str(SERVER), "--grpc_port=0", "--http_port=0", *models()],
            stdout=subprocess.PIPE, stderr=full, text=True) as process:
        line = process.stdout.readline()
        port = int(line.split("http=")[1])
        try:
            with Server(models()) as healthy:
                recorded = record(healthy)
                healthy_port, healthy.http_port = healthy.http_port, port
                assert record(healthy) == recorded
                healthy.http_port = healthy_port
        finally:
            process.terminate()
            assert process.wait(30) == 0


def test_allocations_fail(preload, tmp_path):
    """While every larger allocation fails, large requests end with an error or a cut connection;
    small ones are answered, and afterwards all are. Two small prompts that meet in one step of
    prefill take about 1 MiB, so allocations up to 2 MiB succeed."""
    fault = Switch(preload("fail_malloc"), tmp_path)
    large = json.dumps({"model": "classifier", "token_ids": DOCUMENTS[-1] * 2000, "truncate": True})
    # A text is one allocation of its size; compressed, a smaller message asks for it all the same.
    text = field(1, "classifier") + field(3, "x" * (12 << 20)) + field(5, 1)
    with Server(models(), env=fault.env) as server:
        recorded = record(server)
        assert server.post("/v1/classify", large)[0] == 200

        def try_large(_):
            try:
                return server.post("/v1/classify", large)[0]
            except OSError:
                return 0

        def try_large_message(number):
            packing = (grpc.Compression.NoCompression, grpc.Compression.Gzip)[number % 2]
            return over_grpc(server, "/longview.v1.TextService/Classify", text, 60,
                             lambda answers: "OK", packing)

        def fail_from(least):
            fault.set(least)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                statuses = set(pool.map(try_large, range(8)))
                ends = list(pool.map(try_large_message, range(8)))
            assert statuses <= {0, 200, 413, 429, 500, 503}, statuses
            # No memory for the text, whichever allocation finds that out: no such call is cut.
            assert {code for code, _ in ends} == {"RESOURCE_EXHAUSTED"}, ends
            assert server.process.poll() is None and server.get("/livez")[0] == 200

        with Neighbours(server, recorded) as neighbours:
            for least in (4 << 20, 2 << 20):
                neighbours.wait_for(4)
                fail_from(least)
                neighbours.wait_for(4)
                fault.set(0)
            assert fault.faults > 0, "nothing failed: the test showed nothing"
            neighbours.wait_for(4)
        # Below that the neighbours may be refused; never answered wrongly.
        with Neighbours(server, recorded, closing=True) as neighbours:
            for least in (1 << 20, 1 << 19):
                neighbours.wait_for(4)
                fail_from(least)
                fault.set(0)
                neighbours.wait_for(4)
        assert server.post("/v1/classify", large)[0] == 200
        assert [classify(server, ids) for ids in DOCUMENTS] == of_documents(recorded)
