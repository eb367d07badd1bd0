"""Real rows and the real server: a worker is killed, then the server, which is started again."""

import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bulk_run import answers, nothing_left_over, parts, run, start, texts, write_rows  # noqa: E402
from rolling import fixed_ports  # noqa: E402
from server_process import ZOO, Server, wait_until  # noqa: E402


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_no_row_is_lost_or_doubled(environment, tmp_path):
    source, output, quiet = tmp_path / "a.parquet", tmp_path / "out", tmp_path / "quiet"
    rows = texts(240, 600)
    rows[100] = None
    write_rows(source, rows, 90)
    asked = ("--key-columns", "id", "--chunk-rows", "12")
    ports = fixed_ports("127.0.0.1", 2)
    flags = [f"--grpc_port={ports[0]}", f"--http_port={ports[1]}"]
    address = f"127.0.0.1:{ports[0]}/{ports[1]}"
    server = Server([ZOO / "code-language"], *flags)
    process = start(environment, source, output, address, *asked, "--max-in-flight", "8")
    try:
        wait_until(lambda: len(parts(output)) > 1, 120, "two parts")
        subprocess.run(["kill", "-KILL", children(process.pid)[0]], check=True)
        done = len(parts(output))
        wait_until(lambda: len(parts(output)) > done + 1, 120, "two parts of the new worker")
        assert process.poll() is None
        server.stop(signal.SIGKILL)
        assert process.poll() is None
        server = Server([ZOO / "code-language"], *flags)
        _, said = process.communicate()
        assert process.returncode == 3, said
        assert "status -9 and is replaced" in said and "240 rows written, 1 with an error" in said
        found = answers(output)
        assert [row["id"] for row in found] == [f"id-{number}" for number in range(240)]
        assert [row["row"] for row in found if row["error_code"]] == [100]
        assert {row["model_version"] for row in found if not row["error_code"]} == {"1"}
        assert nothing_left_over(output)
        # Bitwise the answers of a run that nothing disturbs, in any company.
        assert run(environment, source, quiet, address, *asked)[0] == 3
        assert answers(quiet) == found
    finally:
        process.kill()
        process.wait()
        server.stop()
        server.__exit__(None)


def test_each_task_has_its_columns(environment, tmp_path, zoo_server):
    source = tmp_path / "a.parquet"
    write_rows(source, texts(3, 200))
    pages = tmp_path / "pages.jsonl"
    pages.write_text(f'{{"image": "{ZOO}/samples/page.jpg"}}\n{{"image": "none.jpg"}}\n')
    address = f"{zoo_server.grpc}/{zoo_server.http_port}"
    for name, task, model, column, more in (
            ("a.parquet", "embed", "code-language", "embedding", ()),
            ("a.parquet", "generate", "code-lm", "text", ("--max-tokens", "4", "--workers", "2")),
            ("pages.jsonl", "detect", "page-layout", "detections", ("--score-threshold", "0.3")),
            ("pages.jsonl", "classify-image", "page-type", "label", ("--top-k", "2"))):
        output = tmp_path / task
        status, said = run(environment, tmp_path / name, output, address, *more, task=task, model=model)
        assert status == (3 if name == "pages.jsonl" else 0), said
        found = answers(output)
        assert found[0][column] and found[0]["model"] == model and found[0]["error_code"] is None, found[0]
        if name == "pages.jsonl":
            assert "No such file" in found[1]["error_message"] and found[1][column] is None
