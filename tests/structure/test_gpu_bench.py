"""tests/bench/gpu.sh without a GPU, and amx.sh: steps are whole, checks run, reports say what failed."""

import os
import pathlib
import py_compile
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests/bench"
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
GPU = BENCH / "gpu.sh"
AMX = BENCH / "amx.sh"
# The quick steps of the check that need no more than the tests do.
QUICK = "tests,sanitize,bits,decode"


def run(*arguments, path=None, seconds=240, script=GPU, **variables):
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    return subprocess.run([script, *map(str, arguments)], capture_output=True, text=True,
                          env=environment, timeout=seconds)


@pytest.fixture
def device(tmp_path):
    """A folder with a stand-in for nvidia-smi that sees a GPU; no driver comes with it."""
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\ncase $1 in -L) echo "GPU 0: Pretended" ;;'
                       ' *) echo "Pretended, 1.0, 80 MiB" ;; esac\n')
    program.chmod(0o755)
    return tmp_path


def steps():
    listing = run("--list")
    assert listing.returncode == 0, listing.stderr
    return re.findall(r"^(\S+) +\S.*\n +needs: ", listing.stdout, re.MULTILINE)


def test_every_step_is_listed_measured_checked_and_explained():
    text = (BENCH / "gpu_steps.sh").read_text()
    readme = (BENCH / "README.md").read_text()
    assert len(steps()) >= 10
    for name in steps():
        for mode in ("measure", "check"):
            assert f"{mode}_{name.replace('-', '_')}()" in text, (mode, name)
        assert f"| `{name}` |" in readme.split("## On a GPU")[1], name


def test_every_script_of_a_step_is_there_and_compiles(tmp_path):
    text = (BENCH / "gpu_steps.sh").read_text()
    scripts = [BENCH / name for name in re.findall(r"\$BENCH/(\w+\.py)", text)]
    scripts += [ROOT / name for name in re.findall(r"\$ROOT/([\w/]+\.py)", text)]
    assert len(set(scripts)) >= 5
    for script in set(scripts):
        py_compile.compile(script, cfile=tmp_path / "compiled", doraise=True)


def test_the_check_runs_what_can_run_and_says_what_not():
    done = run("--check", "--only", f"{QUICK},vision")
    assert done.returncode == 0, done.stderr
    assert "failed: none" in done.stderr and "vision: left out" in done.stderr
    for dtype in ("fp32", "bf16", "fp16"):
        left_out = dtype == "bf16" and "bf16  left out: this CPU does not compute in it" in done.stderr
        assert left_out or re.search(rf"{dtype}  errors: projection [\d.e-]+, full [\d.e-]+ of", done.stderr)


@pytest.mark.slow
def test_the_whole_check():
    done = run("--check", seconds=900)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_device_nothing_is_measured(tmp_path):
    done = run("--out", tmp_path / "report")
    assert done.returncode != 0 and "no nvidia-smi" in done.stderr
    assert not (tmp_path / "report").exists()


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_a_step_that_fails_or_is_left_out_is_in_the_report(tmp_path, device):
    programs = tmp_path / "build/bin"  # The plugin need not have been built to fail without a driver.
    programs.mkdir(parents=True)
    for program in (BUILD / "bin").iterdir():
        (programs / program.name).symlink_to(program)
    (programs / "longview_cuda.so").touch()
    done = run("--only", "decode,sanitize", "--out", tmp_path / "report", path=device,
               LONGVIEW_BUILD=str(tmp_path / "build"))
    assert done.returncode != 0
    report = (tmp_path / "report/report.md").read_text()
    assert "* device: Pretended" in report
    assert re.search(r"\$ \S*cuda_decode_bench --context=\S+(.|\n)*FAILED \(1\)", report), report
    assert "Not run: there is no compute-sanitizer" in report


def test_a_program_that_leaves_its_device_out_has_failed():
    script = f". {ROOT}/tests/support/on_device.sh; run_on_device"
    for says, status in (("not run on CUDA: why", 1), ("all is well", 0)):
        done = subprocess.run(["bash", "-c", f"{script} echo '{says}'"], capture_output=True)
        assert done.returncode == status, says


def test_unknown_arguments_and_steps_are_refused():
    for script in (GPU, AMX):
        for arguments in (("--measure",), ("--only", "nothing", "--list")):
            assert run(*arguments, script=script).returncode != 0


def test_the_check_of_the_processor_runs_its_quick_steps():
    done = run("--check", "--only", "tests", script=AMX)
    assert done.returncode == 0, done.stderr
    assert "1 steps ran, left out: none, failed: none" in done.stderr


def test_the_report_of_the_processor_has_the_machine_and_what_was_left_out(tmp_path):
    done = run("--only", "documents", "--out", tmp_path / "report", script=AMX, LONGVIEW_BUILD=str(tmp_path))
    assert done.returncode != 0
    report = (tmp_path / "report/report.md").read_text()
    assert re.search(r"\* instructions: (avx\S+|amx\S+| )*\n", report), report
    assert "model_pipe is not built" in report
