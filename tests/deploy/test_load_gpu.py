"""Load tests that watch a GPU: samples of a stand-in for nvidia-smi, and how they are reported."""

import sys

import pytest

from server_process import ROOT, wait_until

sys.path.insert(0, str(ROOT / "deploy/load"))
import figures  # noqa: E402
import gpu  # noqa: E402


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """A program that says what nvidia-smi would: two samples, then nothing more."""
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "$@" >"$0.asked"\n'
                       'echo "40, 1000, [N/A]"\necho "80, 3000, [N/A]"\nexec sleep 60\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_samples_become_means_and_peaks(smi):
    assert gpu.Sampler.missing() is None
    with gpu.Sampler(3) as sampler:
        wait_until(lambda: len(sampler.samples) == 2, what="two samples")
    assert sampler.summary() == {"samples": 2, "utilisation": 60, "memory_mib": 3000}
    asked = smi.with_name("nvidia-smi.asked").read_text()
    assert "--id=3" in asked and ",".join(gpu.FIELDS) in asked


def test_without_nvidia_smi_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no nvidia-smi" in gpu.Sampler.missing()


def metrics(forward, preprocess):
    name = "longview_compute_duration_seconds"
    return (f'# HELP {name} Time\n{name}_sum{{model="m",version="1",phase="forward"}} {forward}\n'
            f'{name}_sum{{model="m",version="1",phase="preprocess"}} {preprocess}\n'
            f'{name}_count{{model="m",version="1",phase="forward"}} 7\n')


def test_only_what_the_device_does_counts_as_computing():
    assert gpu.computing_share(metrics(1, 1), metrics(3, 9), 4) == 0.5


def test_tables_have_columns_for_a_gpu_that_was_watched():
    report = {"statusCodeDistribution": {"OK": 10}, "total": 1e9, "latencyDistribution": None}
    plain = figures.load_table("outstanding", [(1, report)], str)
    assert "GPU" not in plain
    found = {"samples": 2, "utilisation": 60, "memory_mib": 3000, "computing": 0.5}
    watched = figures.load_table("outstanding", [(1, {**report, "gpu": found})], str)
    assert "| GPU % | server computes % | GPU MiB | W |" in watched
    assert watched.splitlines()[-1].endswith("| 60 | 50 | 3000 |  |")


def test_arrivals_too_few_for_an_answer_are_said_to_be():
    report = {"statusCodeDistribution": {}, "total": 1e9, "count": 0}
    assert figures.verdict([(0.5, report), (3.0, report)]).startswith("Nothing was answered")
