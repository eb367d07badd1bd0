"""Fixtures of the bulk tests. `longview` is imported by child processes alone: other tests make their own."""

import os
import pathlib
import sys

import pytest

pytest.importorskip("pyarrow")
ROOT = pathlib.Path(__file__).resolve().parents[3]
BULK = ROOT / "deploy/bulk"
sys.path[:0] = [str(ROOT / "tests/e2e"), str(BULK), str(pathlib.Path(__file__).parent)]

import python_package  # noqa: E402


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Of a program that uses the Python client and longview_bulk."""
    package = python_package.make(tmp_path_factory.mktemp("package"))
    return {**os.environ, "PYTHONPATH": f"{package}:{BULK}", "RAY_USAGE_STATS_ENABLED": "0"}
