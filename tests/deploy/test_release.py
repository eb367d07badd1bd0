"""A release: one command makes all of it, the same bytes each time; the wheel serves."""

import subprocess
import sys
import time

import pytest

import releases
from server_process import ROOT

pytestmark = pytest.mark.slow


def test_all_of_it_is_there_and_summed(released):
    folder, files = released
    assert {name.split("-")[0] for name in files} == {"SHA256SUMS", "longview", "longview_server"}
    for suffix in ("-linux-x86_64.tar.gz", ".spdx.json", "_x86_64.whl", "-none-any.whl"):
        assert any(name.endswith(suffix) for name in files), suffix
    sums = dict(reversed(line.split("  "))
                for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: digest for name, digest in files.items() if name != "SHA256SUMS"}


def test_the_same_build_gives_the_same_bytes(released, tmp_path):
    _, files = released
    again = releases.make(tmp_path)
    same = {name for name in files if not name.endswith(("none-any.whl", "SHA256SUMS"))}
    assert {name: again[name] for name in same} == {name: files[name] for name in same}


def test_the_wheel_answers_within_a_minute(released, tmp_path):
    folder, _ = released
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True, capture_output=True)
    wheel, = folder.glob("longview_server-*.whl")
    subprocess.run([tmp_path / "bin/pip", "install", "--quiet", "--no-index", wheel], check=True)
    with subprocess.Popen([tmp_path / "bin/longview-server", "--grpc_port=0", "--http_port=0"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        port = server.stdout.readline().split("grpc=")[1].split()[0]
        answer = subprocess.run([tmp_path / "bin/longview", "classify", "--model=code-language",
                                 f"--server=localhost:{port}", ROOT / "deploy/serve.sh"],
                                capture_output=True, text=True, timeout=60)
        seconds = time.monotonic() - begin
        server.terminate()
    print(f"environment, installation, first answer: {seconds:.1f} s")
    assert "Shell" in answer.stdout, answer.stderr
    assert server.returncode == 0
