"""The `longview` program against the real server."""

import json
import os
import shutil
import socket
import subprocess
import time

from certificates import Authority
from goldens import half_of_a_pickle, served_models
from secure_server import SecureServer
from server_process import CLIENT, ROOT, ZOO, Server

CODE = "--model=code-language"


def run(server, *arguments, **kwargs):
    address = [f"--server={server.grpc}"] if server else ["--server=127.0.0.1:1"]
    return subprocess.run([CLIENT, *arguments, *address], capture_output=True, text=True,
                          timeout=60, **kwargs)


def test_classify_files_folders_and_stdin(zoo_server, tmp_path):
    shutil.copy(ROOT / "tests/support/summary.py", tmp_path / "a.py")
    (tmp_path / "sub").mkdir()
    shutil.copy(ROOT / "models/text/tokenizer_ffi/src/lowered.rs", tmp_path / "sub/b.rs")
    done = run(zoo_server, "classify", CODE, "--json", str(tmp_path))
    assert done.returncode == 0, done.stderr
    answers = {json.loads(line)["input"]: json.loads(line) for line in done.stdout.splitlines()}
    assert len(answers) == 2
    labels = {path.rsplit("/")[-1]: answer["labels"][0]["name"] for path, answer in answers.items()}
    assert labels == {"a.py": "Python", "b.rs": "Rust"}
    piped = run(zoo_server, "classify", CODE, "--json", "-", input="#!/bin/bash\necho hi; exit 0\n" * 5)
    assert json.loads(piped.stdout)["labels"][0]["name"] == "Shell"


def test_one_bad_file_does_not_stop_the_rest(zoo_server, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "good.c").write_text("#include <stdio.h>\nint main(void) { return 0; }\n" * 5)
    done = run(zoo_server, "classify", CODE, "--json", str(tmp_path))
    assert done.returncode == 1
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [answer for answer in answers if "error" in answer]
    assert len(answers) == 2 and len(errors) == 1
    assert {"code", "message"} <= errors[0]["error"].keys()
    assert run(zoo_server, "classify", CODE, "--lossy", str(tmp_path)).returncode == 0


def test_expressions_of_the_bundled_listops(zoo_server):
    done = run(zoo_server, "classify", "--model=listops", "--json", "-",
               input="[MIN 4 [MAX 2 3 9 ] 3 6 7 ]")
    answer = json.loads(done.stdout)
    assert answer["labels"][0]["name"] == "3" and len(answer["labels"]) == 10
    assert answer["usage"]["input_tokens"] == 11 + 2
    long = run(zoo_server, "classify", "--model=listops", "--json", "-", input="[MAX " + "1 " * 200)
    assert long.returncode == 1 and "202" in json.loads(long.stdout)["error"]["message"]


def test_a_task_of_two_models_needs_a_name(zoo_server):
    done = run(zoo_server, "classify", "--json", "-", input="1")
    assert done.returncode != 0
    assert "code-language" in done.stderr + done.stdout and "listops" in done.stderr + done.stdout


def test_pictures_are_known_without_a_flag(zoo_server, tmp_path):
    page = ROOT / "models/zoo/samples/page.jpg"
    alone = run(zoo_server, "classify", "--json", str(page))
    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout)["model"] == "page-type"
    shutil.copy(page, tmp_path / "page")
    shutil.copy(ROOT / "tests/support/summary.py", tmp_path / "a.py")
    mixed = run(zoo_server, "classify", CODE, "--json", str(tmp_path))
    assert mixed.returncode == 0, mixed.stderr
    assert [json.loads(line)["model"] for line in mixed.stdout.splitlines()] == \
        ["code-language", "page-type"]
    piped = subprocess.run([CLIENT, "classify", "--json", f"--server={zoo_server.grpc}", "-"],
                           stdin=page.open("rb"), capture_output=True, text=True, timeout=60)
    assert json.loads(piped.stdout)["labels"] == json.loads(alone.stdout)["labels"]


def test_the_nearest_model_is_offered(zoo_server):
    done = run(zoo_server, "classify", "--model=code-languge", "-", input="int main() {}")
    assert done.returncode == 1
    assert 'model "code-languge" not found; did you mean code-language?' in done.stderr
    for path in ("/v1/models/code-languge", "/v2/models/code-languge"):
        assert b"did you mean code-language?" in zoo_server.get(path)[2], path


def test_exit_codes(zoo_server):
    assert run(zoo_server, "frobnicate").returncode == 2
    assert run(zoo_server, "classify", "--no_such_flag", "x").returncode == 2
    assert run(None, "status", "--timeout=2").returncode == 3
    assert run(zoo_server, "status").returncode == 0


def status(address, *flags):
    """(exit code, the one line of stderr, seconds)"""
    start = time.monotonic()
    done = subprocess.run([CLIENT, "status", f"--server={address}", *flags], capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stderr, time.monotonic() - start


def test_a_wrong_address_is_explained_at_once(zoo_server, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    cases = [(f"127.0.0.1:{port}", [], "nothing takes connections there"),
             (zoo_server.http, [], "is an HTTP port"),
             (f"http://{zoo_server.http}", [], f"{zoo_server.http} is the HTTP port"),
             (f"http://{zoo_server.grpc}", [], f"without http://: {zoo_server.grpc}"),
             ("localhost", [], "localhost:9000"),
             ("no-such-host.invalid:9000", [], "no-such-host.invalid is not known"),
             (zoo_server.grpc, ["--tls"], "does not speak TLS")]
    with SecureServer(tmp_path / "tls", authority=Authority(tmp_path, "ca")) as secure:
        cases += [(secure.grpc, [], "does not answer without TLS"),
                  (secure.grpc, ["--tls"], "--ca FILE trusts the server's")]
        for address, flags, part in cases:
            code, line, seconds = status(address, *flags)
            assert code == 3 and part in line and len(line.splitlines()) == 1, (address, line)
            # Far from the patience with a server that does not answer.
            assert seconds < 4.5, (address, seconds)


def test_the_key_from_the_environment(tmp_path):
    with SecureServer(tmp_path / "keys", keys="me:secret\n") as server:
        for key, code in (("secret", 0), ("other", 1)):
            done = subprocess.run([CLIENT, "models", f"--server={server.grpc}"], timeout=60,
                                  capture_output=True, env={**os.environ, "LONGVIEW_API_KEY": key})
            assert done.returncode == code, done.stderr


def test_models_estimate_embed(zoo_server):
    assert "code-language" in run(zoo_server, "models").stdout
    source = str(ROOT / "server/app/main.cc")
    estimate = run(zoo_server, "estimate", "--json", "--model=code-language", source)
    assert json.loads(estimate.stdout)["seconds"] > 0
    embedded = run(zoo_server, "embed", "--json", "--model=code-language", source)
    assert embedded.returncode == 0, embedded.stderr
    assert len(json.loads(embedded.stdout)["embedding"]) > 8


def test_check_needs_no_server(tmp_path):
    good = subprocess.run([CLIENT, "models", "--check", ZOO / "code-language"],
                          capture_output=True, text=True, timeout=60)
    assert good.returncode == 0 and "LongformerForSequenceClassification" in good.stdout
    bin_only = next(iter(served_models("longformer").values())).parent.parent / \
        "checkpoint_forms/model_bin_zip"
    broken = half_of_a_pickle(bin_only, tmp_path)
    bad = subprocess.run([CLIENT, "models", "--check", broken], capture_output=True, text=True,
                         timeout=60)
    assert bad.returncode != 0 and "models/convert/" in bad.stdout + bad.stderr


def test_bench_reports_in_ghz_terms(tmp_path):
    (tmp_path / "input.py").write_text("print('hello')\n" * 20)
    with Server([ZOO]) as server:
        done = run(server, "bench", "--json", "--model=code-language", "--rate=50", "--duration=2",
                   str(tmp_path / "input.py"))
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["count"] == 100 and {"average", "fastest", "slowest", "rps",
                                         "latencyDistribution"} <= report.keys()
