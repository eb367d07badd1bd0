"""The demo runs, and the picture in deploy/README.md is one of its runs."""

import os
import re
import subprocess

import pytest

from server_process import BUILD, ROOT

STEPS = ("documents/s", "predicted", "megapixels", "cached tokens", "the same bits")


@pytest.mark.slow
def test_it_runs_to_its_end(tmp_path):
    svg = tmp_path / "demo.svg"
    done = subprocess.run([ROOT / "deploy/demo.sh", "--svg", svg], capture_output=True, text=True,
                          timeout=600, env={**os.environ, "LONGVIEW_PREFIX": str(BUILD)})
    assert done.returncode == 0, done.stdout + done.stderr
    for step in STEPS:
        assert step in done.stdout and step in svg.read_text(), step
    assert "padding: 0 %" in done.stdout
    first, again = map(float, re.findall(r"(?:first|again): ([\d.]+) s", done.stdout))
    assert again < first


def test_the_picture_shows_every_step():
    picture = (ROOT / "deploy/demo/demo.svg").read_text()
    assert all(step in picture for step in STEPS)
    assert "(demo/demo.svg)" in (ROOT / "deploy/README.md").read_text()
