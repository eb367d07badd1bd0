"""deploy/demo.sh: refuses a busy machine, and comes to its end on the bundled models, and the picture in
deploy/README.md is one of its runs."""

import os
import subprocess

import pytest

from server_process import BUILD, ROOT

STEPS = ("documents/s", "padding: 0 %", "predicted", "megapixels", "again: ", "the same bits")


def demo(*arguments, **environment):
    return subprocess.run([ROOT / "deploy/demo.sh", *arguments], capture_output=True, text=True,
                          timeout=300, env={**os.environ, **environment})


@pytest.mark.parametrize("load, insisting, refused", [
    ("0.51", "", True), ("12.34", "", True), ("0.50", "", False), ("12.34", "1", False)])
def test_a_busy_machine_is_refused(tmp_path, load, insisting, refused):
    (tmp_path / "load").write_text(f"{load} 9.00 9.00 1/100 12345\n")
    done = demo(LONGVIEW_LOADAVG=str(tmp_path / "load"), LONGVIEW_ANY_LOAD=insisting,
                LONGVIEW_PREFIX=str(tmp_path))
    assert done.returncode == 1
    # What is not refused ends where it looks for the server.
    wanted = f"busy: its load of the last minute is {load}" if refused else "no " + str(tmp_path)
    assert wanted in done.stderr and ("LONGVIEW_ANY_LOAD=1" in done.stderr) == refused


@pytest.mark.slow
def test_every_step_prints_its_numbers(tmp_path):
    done = demo("--svg", str(tmp_path / "demo.svg"), LONGVIEW_ANY_LOAD="1",
                LONGVIEW_PREFIX=str(BUILD))
    assert done.returncode == 0, done.stderr
    for wanted in STEPS:
        assert wanted in done.stdout
        assert wanted in (tmp_path / "demo.svg").read_text()


def test_the_picture_shows_every_step():
    picture = (ROOT / "deploy/demo/demo.svg").read_text()
    assert all(step in picture for step in STEPS)
    assert "(demo/demo.svg)" in (ROOT / "deploy/README.md").read_text()
