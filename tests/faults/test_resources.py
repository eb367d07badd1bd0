"""What the machine runs out of: descriptors, disk, memory."""

import json
import os
import pathlib
import resource
import socket
import subprocess
import time

from neighbours import DOCUMENTS, Neighbours, classify, models, record
from preload import Switch
from server_process import Server, wait_until

HTTP_LINE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_descriptors_run_out():
    """More connections than descriptors, on either port: who is connected is served on, and once
    they leave both ports take calls again."""
    with Server(models()) as server:
        recorded, idle = record(server), descriptors(server)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (idle + 40, idle + 40))
        keeper = socket.create_connection(("127.0.0.1", server.http_port))
        keeper.sendall(HTTP_LINE)
        assert b"200 OK" in keeper.recv(4096)
        crowd = []
        for port in (server.http_port, server.grpc_port):
            for _ in range(120):
                member = socket.socket()
                member.settimeout(5)
                member.connect(("127.0.0.1", port))
                crowd.append(member)
        time.sleep(1)
        keeper.sendall(HTTP_LINE)
        keeper.settimeout(10)
        assert b"200 OK" in keeper.recv(4096)
        assert server.process.poll() is None
        for member in crowd:
            member.close()
        wait_until(lambda: descriptors(server) <= idle + 10, 30, "the crowd's descriptors given back")
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(6)
        live = subprocess.run(["grpcurl", "-plaintext", "-max-time", "10", server.grpc,
                               "grpc.health.v1.Health/Check"], capture_output=True, text=True)
        assert "SERVING" in live.stdout, live


def test_no_disk(preload, tmp_path):
    """Serving needs no file of its own: no temporary files, and a log that cannot be written is
    lost, not waited for."""
    fault = Switch(preload("full_disk"), tmp_path)
    env = {**fault.env, "TMPDIR": "/nowhere"}
    with Server(models(tmp_path), "--allow_model_control=true", env=env) as server:
        recorded = record(server)
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(4)
            fault.set(1)
            neighbours.wait_for(8)
            assert server.post("/v2/repository/models/classifier/load", {})[0] == 200
            picture = pathlib.Path(__file__).parents[2] / "deploy/console.png"
            assert server.post("/v1/classify?model=classifier", picture.read_bytes(),
                               headers={"Content-Type": "image/png"})[0] in (400, 415, 422, 501)
            assert fault.faults > 0, "nothing was written: the test showed nothing"
            neighbours.wait_for(4)
            fault.set(0)
            neighbours.wait_for(4)
        assert record(server) == recorded
        assert server.stop() == 0


def test_log_on_a_full_device():
    with open("/dev/full", "w") as full, subprocess.Popen(
            [str(pathlib.Path(os.environ.get("LONGVIEW_BUILD", "build")) / "bin/longview-server"),
             "--grpc_port=0", "--http_port=0", *models()],
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
    """While every larger allocation fails, large requests are refused, one by one; small ones are
    answered, and afterwards all are."""
    fault = Switch(preload("fail_malloc"), tmp_path)
    large = DOCUMENTS[-1] * 300
    with Server(models(), env=fault.env) as server:
        recorded = record(server)
        body = json.dumps({"model": "classifier", "token_ids": large, "truncate": True})
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(4)
            for least in (1 << 20, 1 << 19):
                fault.set(least)
                statuses = [server.post("/v1/classify", body)[0] for _ in range(8)]
                assert all(status in (200, 400, 413, 429, 500, 503) for status in statuses), statuses
                assert server.get("/livez")[0] == 200
                neighbours.wait_for(4)
                fault.set(0)
            assert fault.faults > 0, "nothing failed: the test showed nothing"
            neighbours.wait_for(4)
        assert [classify(server, ids) for ids in DOCUMENTS] == recorded[:len(DOCUMENTS)]
