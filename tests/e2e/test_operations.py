"""Programs, flags, exit codes, probes, metrics and leaving: api.md's operations part."""

import json
import os
import signal
import socket
import subprocess
import threading

import pytest

from goldens import half_of_a_pickle, served_models
from server_process import SERVER, Server, wait_until

MODEL = served_models("longformer")["classification"]
IDS = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 4],
                   "data": [5, 6, 7, 8]}]}


def run(*arguments, env=None):
    return subprocess.run([str(SERVER), *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, **(env or {})})


def last_line(text):
    return text.strip().splitlines()[-1]


def test_version_and_help():
    version = run("--version")
    assert version.returncode == 0
    first = version.stdout.splitlines()[0].split()
    assert first[0] == "longview" and len(first[1].split(".")) == 3
    help_text = run("--help")
    assert help_text.returncode == 0
    for flag in ("--models", "--grpc_port", "--max_queue_seconds", "--drain_seconds",
                 "--cors_origins", "16 KiB", "120 s"):
        assert flag in help_text.stdout


def test_print_config_merges_file_environment_and_flags(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"grpc_port": 1, "http_port": 2, "threads": 1}))
    done = run("--print_config", "--config", file, "--grpc-port=11", MODEL,
               env={"LONGVIEW_HTTP_PORT": "22", "LONGVIEW_GRPC_PORT": "33"})
    assert done.returncode == 0
    config = json.loads(done.stdout)
    assert (config["grpc_port"], config["http_port"], config["threads"]) == (11, 22, 1)
    assert config["models"] == [str(MODEL)]


def test_validate_config(tmp_path):
    assert run("--validate_config", MODEL).returncode == 0
    bad = run("--validate_config", tmp_path / "nowhere")
    assert bad.returncode != 0
    assert "nowhere" in last_line(bad.stderr)


@pytest.mark.parametrize("arguments,fragment", [
    (["--no_such_flag"], "no_such_flag"),
    (["--grpc_port=abc"], "abc"),
    (["--max_message_bytes=12XB"], "12XB"),
    (["--config=/no/such/file.json"], "/no/such/file.json"),
    (["--dtype=int4"], "int4"),
])
def test_wrong_flags_exit_2_and_say_which(arguments, fragment):
    done = run(*arguments, MODEL)
    assert done.returncode == 2
    assert fragment in last_line(done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "cuda:0,cuda:1"])
def test_a_device_that_is_not_there_is_refused_at_start_up(device):
    # A driver that is told to show no device has none, whatever the machine.
    done = run(f"--device={device}", "--grpc_port=0", "--http_port=0", MODEL,
               env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert f"flag --device: '{device}': " in last_line(done.stderr)
    assert "auto or cpu" in last_line(done.stderr)
    assert done.stdout == ""


def test_auto_stays_on_the_cpu_and_says_why_once():
    with Server([MODEL], env={"CUDA_VISIBLE_DEVICES": ""}) as server:
        lines = [line for line in server.log().splitlines() if "CUDA" in line]
        assert len(lines) == 1 and "cpu" in lines[0] and "WARN" not in lines[0].upper(), lines


def test_broken_model_exits_1_and_names_it(tmp_path):
    broken = tmp_path / "broken-model"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    done = run("--grpc_port=0", "--http_port=0", broken)
    assert done.returncode == 1
    assert "broken-model" in last_line(done.stderr)


def test_taken_port_exits_1_and_names_it():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--grpc_port=0", f"--http_port={port}", MODEL)
    assert done.returncode == 1
    assert str(port) in last_line(done.stderr)


def test_check_explains_directories(tmp_path):
    good = run("--check", MODEL)
    assert good.returncode == 0
    assert "LongformerForSequenceClassification" in good.stdout
    pickle = MODEL.parent.parent / "checkpoint_forms/model_bin_zip"
    assert run("--check", pickle).returncode == 0
    broken = half_of_a_pickle(pickle, tmp_path)
    bad = run("--check", broken)
    assert bad.returncode != 0
    assert "models/convert/" in bad.stdout + bad.stderr
    (tmp_path / "empty").mkdir()
    assert run("--check", tmp_path / "empty").returncode != 0


def test_probes_and_metadata(zoo_server):
    for path, answer in [("/livez", None), ("/readyz", None), ("/v2/health/live", {"live": True}),
                         ("/v2/health/ready", {"ready": True})]:
        status, headers, body = zoo_server.get(path)
        assert status == 200, path
        assert headers["x-request-id"]
        if answer:
            assert json.loads(body) == answer
    status, _, body = zoo_server.get("/version")
    assert status == 200 and "version" in json.loads(body)


def test_paths_and_methods(zoo_server):
    assert zoo_server.get("/nowhere")[0] == 404
    status, headers, _ = zoo_server.post("/livez")
    assert status == 405 and "GET" in headers["Allow"]
    status, _, body = zoo_server.post("/v1/chat/completions", {"model": "x", "messages": []})
    assert status == 404 and "/v1/completions" in json.loads(body)["error"]["message"]
    status, headers, _ = zoo_server.get("/livez", headers={"x-request-id": "mine-1"})
    assert headers["x-request-id"] == "mine-1"


def test_metrics_are_clean_and_count(zoo_server):
    source = {"model": "code-language", "text": "int main() {}"}
    exposition = zoo_server.get("/metrics")[2]
    checked = subprocess.run(["promtool", "check", "metrics"], input=exposition,
                             capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert zoo_server.post_json("/v1/classify", source)[0] == 200
    count = {"api": "http", "method": "/v1/classify", "code": "OK"}
    before = zoo_server.metric("longview_request_duration_seconds_count", **count)
    assert zoo_server.post_json("/v1/classify", source)[0] == 200
    assert zoo_server.metric("longview_request_duration_seconds_count", **count) == before + 1
    zoo_server.post("/v2/models/unheard-of/infer", IDS)
    assert b"unheard-of" not in zoo_server.get("/metrics")[2]


def test_startup_line_is_the_only_stdout():
    with Server([MODEL]) as server:
        server.post("/v2/models/classification/infer", IDS)
        assert server.stop() == 0
        assert server.process.stdout.read() == ""


def test_json_log_has_one_line_a_request_and_no_content():
    with Server([f"classification={MODEL}"]) as server:
        secret = "canary-4711"
        server.post("/v1/classify", {"model": "classification", "text": secret})
        server.post("/v2/models/classification/infer", IDS, headers={"x-request-id": "rid-1"})
        server.stop()
        lines = [json.loads(line) for line in server.log().splitlines()]
        assert secret not in server.log()
        mine = [line for line in lines if line.get("request_id") == "rid-1"]
        assert len(mine) == 1
        assert mine[0]["code"] == "OK" and mine[0]["model"] == "classification"
        assert {"api", "method", "seconds"} <= mine[0].keys()


def test_sigterm_drains_and_exits_0():
    with Server([f"classification={MODEL}"], "--drain_seconds=2") as server:
        answers, stop = [], threading.Event()

        def load():
            while not stop.is_set():
                try:
                    answers.append(server.post("/v2/models/classification/infer", IDS)[0])
                except OSError:
                    answers.append("closed")
                    return

        worker = threading.Thread(target=load)
        worker.start()
        wait_until(lambda: len(answers) > 3)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: server.get("/readyz")[0] == 503, 2, "readiness off")
        seen = len(answers)
        wait_until(lambda: len(answers) > seen + 3, 2, "requests accepted while draining")
        assert server.get("/livez")[0] == 200
        assert server.process.wait(20) == 0
        stop.set()
        worker.join()
        # Refusals come only once the time of draining is over, when the listeners close.
        assert set(answers[:seen + 3]) == {200}
        assert set(answers) <= {200, 503, "closed"}




def test_kubernetes_service_variables_do_not_matter():
    with Server([MODEL], env={"LONGVIEW_HTTP_PORT": "tcp://10.0.0.1:8080"}) as server:
        assert server.get("/readyz")[0] == 200
        assert server.stop() == 0
        assert "LONGVIEW_HTTP_PORT" in server.log()
