"""The command against a service of a set rate: errors, refusals, resuming, bounded memory."""

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request
import zlib

import pyarrow.parquet as pq
import pytest
from bulk_run import answers, nothing_left_over, parts, run, start
from server_process import wait_until

HERE = pathlib.Path(__file__).parent


@contextlib.contextmanager
def service(environment, rate, most, port=0):
    """The address that --servers takes."""
    process = subprocess.Popen([sys.executable, HERE / "fake_service.py", str(rate), str(most), str(port)],
                               env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def write(path, texts):
    with open(path, "w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": number, "text": text}) + "\n")


def children_of(pid):
    """Their ids; none of a process that is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def peak_bytes(pid):
    """The most memory that a process had so far."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def right(row):
    return row["label"] == str(zlib.crc32(f"row {row['row']}".encode()))


def fake_metric(server, name):
    host, _, http = server.partition("/")
    with urllib.request.urlopen(f"http://{host.split(':')[0]}:{http}/metrics") as answer:
        return float(re.search(rf"^{name}\S* (\S+)$", answer.read().decode(), re.MULTILINE)[1])


def test_errors_are_rows_and_are_asked_again_when_told(environment, tmp_path):
    source, output = tmp_path / "a.jsonl", tmp_path / "out"
    texts = [f"row {n}" for n in range(40)]
    texts[3], texts[17], texts[39], texts[5] = "bad", "worse", "worse 2", 7
    write(source, texts)
    mended = tmp_path / "mended"
    with service({**environment, "FAKE_SERVICE_MENDED": str(mended)}, 1000, 100) as server:
        asked = (environment, source, output, server, "--chunk-rows", "10")
        status, said = run(*asked)
        assert status == 3 and "40 rows written, 4 with an error; answers: 36 of version 7" in said
        assert "--retry-errors asks" in said
        rows = answers(output)
        assert {row["row"]: (row["error_code"], row["error_message"]) for row in rows if row["error_code"]} == {
            3: ("INVALID_ARGUMENT", "text: bad"), 5: ("INVALID_ARGUMENT", "text: '7' is no string"),
            17: ("INTERNAL", "request 1"), 39: ("INTERNAL", "request 1")}
        assert all(row["label"] is None for row in rows if row["error_code"])
        before = {path: path.stat().st_mtime_ns for path in parts(output)}
        mended.touch()
        assert run(*asked)[0] == 3
        assert {path: path.stat().st_mtime_ns for path in parts(output)} == before
        status, said = run(*asked, "--retry-errors")
        assert status == 3 and "40 rows written, 2 with an error" in said
        assert [path for path in parts(output) if path.stat().st_mtime_ns == before[path]] == [parts(output)[2]]
        after = answers(output)
        assert [row for row in after if row["row"] not in (17, 39)] == \
            [row for row in rows if row["row"] not in (17, 39)]
        assert nothing_left_over(output)


def test_refused_rows_come_back_and_two_servers_share(environment, tmp_path):
    source, output = tmp_path / "a.jsonl", tmp_path / "out"
    write(source, [f"row {n}" for n in range(600)])
    with service(environment, 200, 4) as slow, service(environment, 1000, 8) as fast:
        status, said = run(environment, source, output, f"{slow},{fast}", "--chunk-rows", "100")
        assert status == 0, said
        assert all(right(row) for row in answers(output)) and len(answers(output)) == 600
        assert fake_metric(slow, "fake_refused_total") > 0


def test_a_service_that_is_away_ends_the_run_and_the_same_command_goes_on(environment, tmp_path):
    source, output = tmp_path / "a.jsonl", tmp_path / "out"
    write(source, [f"row {n}" for n in range(100)])
    asked = ("--chunk-rows", "10", "--patience", "2", "--timeout", "2")
    status, said = run(environment, source, output, "127.0.0.1:1", *asked)
    assert status == 1 and "--patience: no answer from 127.0.0.1:1 for" in said
    assert "127.0.0.1:1 does not answer" in said and not parts(output) and nothing_left_over(output)
    with service(environment, 1000, 100) as server:
        assert run(environment, source, output, server, *asked)[0] == 0
    assert len(answers(output)) == 100


def test_workers_of_a_job_share_the_input(environment, tmp_path):
    source, output = tmp_path / "a.jsonl", tmp_path / "out"
    write(source, [f"row {n}" for n in range(95)])
    with service(environment, 1000, 100) as server:
        assert run(environment, source, output, server, "--chunk-rows", "10", "--plan")[0] == 0
        assert not parts(output)
        workers = [start({**environment, "JOB_COMPLETION_INDEX": str(index)}, source, output, server,
                         "--chunk-rows", "10", "--of", "3") for index in range(3)]
        said = [worker.communicate()[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0, 0], said
        assert "35 rows written" in said[0] and "30 rows written" in said[1] and "30 rows written" in said[2]
    assert len(answers(output)) == 95 and all(right(row) for row in answers(output))


def simulate(environment, tmp_path, rows, rate, workers):
    """Rows at the service's rate, with a worker killed in the middle; the peak memory of its processes
    in bytes."""
    source, output = tmp_path / "a.jsonl", tmp_path / "out"
    write(source, (f"row {n}" for n in range(rows)))
    chunk_rows = max(rows // 1000, 50)
    with service(environment, rate, 100_000) as server:
        with open(tmp_path / "said", "w", encoding="utf-8") as said:
            process = start(environment, source, output, server, "--chunk-rows", str(chunk_rows), "--workers",
                            str(workers), stderr=said)
        wait_until(lambda: len(parts(output)) > rows / chunk_rows / 4, 3600, "a quarter of the parts")
        children = children_of(process.pid)
        assert process.poll() is None
        subprocess.run(["kill", "-KILL", children[0]], check=True)
        peak = 0
        while process.poll() is None:
            peak = max([peak, *map(peak_bytes, [process.pid, *children_of(process.pid)])])
            time.sleep(0.05)
    text = (tmp_path / "said").read_text()
    assert process.returncode == 0, text
    print(text.splitlines()[-1], "| last line of progress:", text.splitlines()[-2])
    assert f"{rows:,} rows written, 0 with an error; answers: {rows:,} of version 7" in text
    assert re.search(r"worker \d+ ended with status -9 and is replaced", text)
    count = 0
    seen = bytearray(rows)
    for path in parts(output):  # One part at a time: a million rows are not held here either.
        for row in pq.read_table(path, columns=["row", "label"]).to_pylist():
            assert right(row)
            seen[row["row"]] += 1
            count += 1
    assert count == rows and set(seen) == {1} and nothing_left_over(output)
    return peak


def test_a_tiny_simulation(environment, tmp_path):
    simulate(environment, tmp_path, 3000, 1000, 2)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_a_million_rows_in_bounded_memory(environment, tmp_path):
    peak = simulate(environment, tmp_path, 1_000_000, 3000, 1)
    print(f"peak memory of a process of the run: {peak / 2**20:.0f} MiB")
    assert peak < 400 * 2**20


def test_a_stopped_run_leaves_no_worker(environment, tmp_path):
    source, output = tmp_path / "a.jsonl", tmp_path / "out"
    write(source, [f"row {n}" for n in range(20000)])
    with service(environment, 100, 100) as server:
        process = start(environment, source, output, server, "--chunk-rows", "10")
        wait_until(lambda: parts(output), 60, "a part")
        children = children_of(process.pid)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_until(lambda: not any(pathlib.Path(f"/proc/{child}").exists() for child in children), 60,
                   "the workers of a dead supervisor are gone")
        before = len(parts(output))
        process = start(environment, source, output, server, "--chunk-rows", "10")
        wait_until(lambda: process.poll() is not None or len(parts(output)) > before, 60, "another part")
        process.send_signal(signal.SIGTERM)
        assert "goes on from here" in process.communicate()[1] and process.returncode == 130
