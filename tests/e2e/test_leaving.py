"""Leaving while something does not come back: within what the flags say."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from goldens import served_models
from server_process import Server, wait_until

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
