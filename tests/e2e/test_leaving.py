"""Leaving while something does not come back: within what the flags say."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from goldens import served_models
from server_process import ZOO, Server, wait_until

MODEL = served_models("longformer")["classification"]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_leaves_while_a_model_loads(tmp_path, sent):
    """Opening the model's weights never ends."""
    model = tmp_path / "endless"
    shutil.copytree(MODEL, model)
    stall = tmp_path / "stall_open.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o",
                    stall, pathlib.Path(__file__).parent / "stall_open.c", "-ldl"], check=True)
    with Server([model], "--drain_seconds=1", "--shutdown_seconds=2", wait=False,
                env={**os.environ, "LD_PRELOAD": str(stall)}) as server:
        wait_until(lambda: '"listening"' in server.log(), 60, "open ports")
        time.sleep(0.5)
        assert server.process.poll() is None, server.log()
        start = time.monotonic()
        assert server.stop(sent, seconds=30) == 0
        assert time.monotonic() - start < 15


def test_what_still_runs_is_told():
    """The time to finish is over at once: a stream ends with an error, a whole answer is one."""
    body = {"model": "code-lm", "prompt": "def main():", "max_tokens": 30000, "temperature": 0,
            "ignore_eos": True}
    with Server([ZOO / "code-lm"], "--drain_seconds=0", "--shutdown_seconds=0") as server:
        stream, whole = (http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
                         for _ in range(2))
        whole.request("POST", "/v1/completions", json.dumps(body))
        stream.request("POST", "/v1/completions", json.dumps(body | {"stream": True}))
        answer = stream.getresponse()
        assert answer.status == 200 and answer.readline()
        server.process.terminate()
        events = [line for line in answer.read().decode().splitlines() if line]
        last = json.loads(events[-1].removeprefix("data: "))
        assert last["error"]["code"] == "UNAVAILABLE", events[-1]
        refused = whole.getresponse()
        assert refused.status == 503 and int(refused.getheader("Retry-After")) >= 1
        assert json.loads(refused.read())["error"]["code"] == "UNAVAILABLE"
        assert server.process.wait(60) == 0
