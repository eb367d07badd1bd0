"""Fixtures of the black-box tests: servers are shared by all tests that only read them."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from goldens import ENCODERS, served_models  # noqa: E402
from server_process import ZOO, Server  # noqa: E402


@pytest.fixture(scope="session")
def golden_server():
    """Every served model of the encoder families' fixtures, fp32."""
    models = [f"{name}={path}" for family in ENCODERS
              for name, path in served_models(family).items()]
    with Server([",".join(models)], "--dtype=fp32") as server:
        yield server


@pytest.fixture(scope="session")
def zoo_server():
    """The bundled models."""
    with Server([ZOO]) as server:
        yield server
