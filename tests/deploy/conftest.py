"""Fixtures of the deployment tests. A tool that is not here skips its tests and says which."""

import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(pathlib.Path(__file__).parent)]

import releases  # noqa: E402
from server_process import ZOO, Server  # noqa: E402


@pytest.fixture(scope="session")
def zoo_server():
    """The bundled models."""
    with Server([ZOO]) as server:
        yield server


@pytest.fixture(scope="session")
def tool():
    """tool(name) is the path of a program; skips the test where there is none."""
    def find(name):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed here")
        return path
    return find


@pytest.fixture(scope="session")
def released(tmp_path_factory):
    """(folder, {name: SHA-256}) of a whole release, made once."""
    folder = tmp_path_factory.mktemp("dist")
    return folder, releases.make(folder)
