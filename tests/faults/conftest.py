"""Faults around the server: each test breaks one thing, and a neighbour's answers must not
change by a bit before, while and after (tests/run.sh --slow)."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from preload import build  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def preload(tmp_path_factory):
    """name -> the library that stands before libc's functions (NAME.c in this folder)."""
    folder = tmp_path_factory.mktemp("preload")
    return lambda name: build(name, folder)
