"""The same by Ray Data, where ray is installed."""

import pathlib
import signal
import subprocess
import time

import pytest
from bulk_run import answers, nothing_left_over, parts, run, start, texts, write_rows
from server_process import ZOO, Server, wait_until

pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(1800)
CONFIG = ("--key-columns", "id", "--ray", "--workers", "2")


def actors(output):
    """Processes of Ray's pool that belong to the run: they have a temporary of its folder open."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if any(str(output) in str(link.readlink()) for link in (process / "fd").iterdir()):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_a_killed_actor(environment, tmp_path):
    source, output = tmp_path / "a.parquet", tmp_path / "out"
    write_rows(source, texts(240, 600), 90)
    with Server([ZOO / "code-language"]) as server:
        address = f"{server.grpc}/{server.http_port}"
        with open(tmp_path / "said", "w", encoding="utf-8") as said:
            process = start(environment, source, output, address, *CONFIG, "--chunk-rows", "12", "--max-in-flight",
                            "4", stderr=said)
        try:
            wait_until(lambda: process.poll() is not None or len(parts(output)) > 1 and actors(output), 600,
                       "two parts and an actor at work")
            assert process.poll() is None, (tmp_path / "said").read_text()
            subprocess.run(["kill", "-KILL", str(actors(output)[0])], check=True)
            assert process.wait() == 0, (tmp_path / "said").read_text()
        finally:
            process.terminate()
            process.wait()
        found = answers(output)
        assert [row["id"] for row in found] == [f"id-{number}" for number in range(240)]
        assert nothing_left_over(output)
        # No part is made again: all are there.
        assert run(environment, source, output, address, *CONFIG, "--chunk-rows", "12")[0] == 0
        assert answers(output) == found


@pytest.mark.slow
@pytest.mark.parametrize("ray", [False, True])
def test_twenty_thousand_rows(environment, tmp_path, ray):
    """A worker and the server are killed in the middle; the server is started again."""
    from rolling import fixed_ports
    source, output = tmp_path / "a.parquet", tmp_path / "out"
    write_rows(source, texts(20_000, 80))
    ports = fixed_ports("127.0.0.1", 2)
    flags = [f"--grpc_port={ports[0]}", f"--http_port={ports[1]}"]
    server = Server([ZOO / "code-language"], *flags)
    begun = time.monotonic()
    with open(tmp_path / "said", "w", encoding="utf-8") as said:
        process = start(environment, source, output, f"127.0.0.1:{ports[0]}/{ports[1]}",
                        *(CONFIG if ray else CONFIG[:2]), "--workers", "2", stderr=said)
    try:
        wait_until(lambda: len(parts(output)) >= 6 and actors(output), 900, "six parts")
        victims = [pid for pid in actors(output) if pid != process.pid]
        subprocess.run(["kill", "-KILL", str(victims[0])], check=True)
        wait_until(lambda: len(parts(output)) >= 11, 900, "eleven parts")
        server.stop(signal.SIGKILL)
        server = Server([ZOO / "code-language"], *flags)
        assert process.wait() == 0, (tmp_path / "said").read_text()
        print(f"20,000 rows in {time.monotonic() - begun:.0f} s")
        assert [row["id"] for row in answers(output)] == [f"id-{number}" for number in range(20_000)]
        assert nothing_left_over(output)
    finally:
        process.kill()
        process.wait()
        server.stop()
        server.__exit__(None)
