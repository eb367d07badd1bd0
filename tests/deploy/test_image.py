"""The container image as a platform runs it: foreign user, read-only root, one CPU, 1 GB.

Needs a Docker daemon with the image (LONGVIEW_IMAGE, default longview:0.1.0); skipped elsewhere.
The container shares the host's network, so that a daemon without a bridge will do.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from server_process import CLIENT, ROOT

IMAGE = os.environ.get("LONGVIEW_IMAGE", "longview:0.1.0")
MEGABYTE = 10**6

pytestmark = pytest.mark.slow


def docker(*arguments, **kwargs):
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=120,
                          **kwargs)


@pytest.fixture(scope="module")
def image():
    if not shutil.which("docker") or docker("version").returncode != 0:
        pytest.skip("no Docker daemon here")
    found = docker("image", "inspect", IMAGE)
    if found.returncode != 0:
        pytest.skip(f"the image {IMAGE} is not built here")
    return json.loads(found.stdout)[0]


class Container:
    """The image under the restrictions of a strict platform, on free ports."""

    def __init__(self, *flags, volume=None):
        mounted = [f"--volume={volume}:/mnt/models:ro"] if volume else []
        started = docker("run", "--detach", "--network=host", "--read-only", "--user=54321:0",
                         "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=1g",
                         "--cpus=1", *mounted, IMAGE, "--host=127.0.0.1", "--grpc_port=0",
                         "--http_port=0", "--drain_seconds=0", *flags)
        assert started.returncode == 0, started.stderr
        self.id = started.stdout.strip()
        end = time.monotonic() + 120
        while not (ready := re.search(r"longview ready grpc=(\d+) http=(\d+)",
                                      docker("logs", self.id).stdout)):
            assert time.monotonic() < end, docker("logs", self.id).stderr
            time.sleep(0.2)
        self.grpc, self.http = f"127.0.0.1:{ready[1]}", f"127.0.0.1:{ready[2]}"

    def log(self):
        return [json.loads(line) for line in docker("logs", self.id).stderr.splitlines()]

    def remove(self):
        docker("rm", "--force", self.id)


@pytest.fixture(scope="module")
def container(image):
    started = Container()
    yield started
    started.remove()


def test_what_the_image_says_of_itself(image):
    config = image["Config"]
    assert config["User"] == "10001:0"
    assert config["StopSignal"] == "SIGTERM"
    assert config["Entrypoint"] == ["longview-server"]
    assert config["Healthcheck"]["Test"][:3] == ["CMD", "longview", "status"]
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert image["Size"] < 600 * MEGABYTE


def test_threads_and_cache_follow_the_cgroup(container):
    shown = docker("exec", container.id, "longview-server", "--print_config")
    assert shown.returncode == 0, shown.stderr
    config = json.loads(shown.stdout)
    assert config["threads"] == 1
    assert 0 < config["cache_bytes"] <= 2**30 // 4
    assert container.log()[0]["threads"] == 1


def test_the_readme_requests(container):
    source = ROOT / "kernels/span/plan.h"
    answer = subprocess.run(
        ["curl", "-s", "--data-binary", f"@{source}", "-H", "Content-Type: text/plain",
         f"http://{container.http}/v1/classify?model=code-language&top_k=2"],
        check=True, capture_output=True, text=True)
    assert json.loads(answer.stdout)["labels"][0]["name"] == "C++"
    typed = subprocess.run([CLIENT, "classify", "--server", container.grpc, "--model",
                            "code-language", source], check=True, capture_output=True, text=True)
    assert "C++" in typed.stdout
    stream = subprocess.run(
        ["curl", "-sN", f"http://{container.http}/v1/completions", "-d",
         '{"model": "code-lm", "prompt": "def main():", "max_tokens": 16, "stream": true}'],
        check=True, capture_output=True, text=True)
    assert stream.stdout.endswith("data: [DONE]\n\n")


def test_the_health_command_works_inside(container):
    port = container.grpc.rpartition(":")[2]
    done = docker("exec", container.id, "longview", "status", f"--server=127.0.0.1:{port}")
    assert done.returncode == 0, done.stderr


def test_nothing_can_be_written(container):
    assert docker("exec", container.id, "sh", "-c", "echo x > /opt/longview/x").returncode != 0


@pytest.mark.parametrize("transport", ["rest", "binary", "grpc"])
def test_kserve_client_against_its_runtime(image, transport):
    """One model directory at /mnt/models under the service's name, as the runtime's args say."""
    container = Container("--models=long-text=/mnt/models",
                          volume=ROOT / "models/zoo/code-language")
    try:
        address = container.grpc if transport == "grpc" else f"http://{container.http}"
        done = subprocess.run(
            [sys.executable, ROOT / "tests/e2e/kserve_call.py", transport, address, "long-text",
             "[[0, 5, 6, 7, 2]]"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)[0]) > 10
    finally:
        container.remove()


def test_it_stops_with_exit_0(image):
    container = Container()
    try:
        docker("kill", f"--signal={signal.SIGTERM.name}", container.id)
        assert docker("wait", container.id).stdout.strip() == "0"
    finally:
        container.remove()
