"""What tests of trainers share: a trainer's modules, and what the server makes of an exported model."""

import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / "tests/e2e")]

from server_process import BUILD  # noqa: E402
from trainer_modules import modules_of  # noqa: E402


@pytest.fixture(scope="module")
def modules(request):
    """Imports by name from models/train/<TRAINER of the test's module>."""
    with modules_of(ROOT / "models/train" / request.module.TRAINER) as importing:
        yield importing


@pytest.fixture(scope="session")
def program():
    """program(name) is the path of one that was built; skips where it was not."""
    def find(name):
        path = BUILD / "bin" / name
        if not path.exists():
            pytest.skip(f"no {name} is built")
        return path
    return find


@pytest.fixture(scope="session")
def checked(program):
    """checked(directory) is what the server tells about a directory that it can read."""
    def check(directory):
        done = subprocess.run([program("longview-server"), "--check", directory],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        return done.stdout
    return check


@pytest.fixture(scope="session")
def served_logits(program):
    """served_logits(directory, request) are the answers of the server's model in 32 bits."""
    def ask(directory, request):
        done = subprocess.run([program("model_pipe"), directory, "fp32", "1"], text=True,
                              capture_output=True, check=True, input=json.dumps(request) + "\n")
        return json.loads(done.stdout.splitlines()[-1])["logits"]
    return ask
