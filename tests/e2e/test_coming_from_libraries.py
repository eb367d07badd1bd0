"""Examples of deploy/COMING_FROM.md for users of transformers and sentence-transformers: what asks the server prints
what the library's program printed when it was recorded. tests/real runs the libraries themselves."""

import json
import os
import subprocess
import sys

import pytest

import library_examples
import python_package
from server_process import Server

PAIRS = library_examples.pairs()
PRINTED = json.loads(library_examples.PRINTED.read_text())
TOLERANCE = 3e-4  # Numbers are printed with four digits, in fp32.


@pytest.fixture(scope="module")
def server():
    models = ",".join(f"{name}={directory}" for name, directory in library_examples.DIRECTORIES.items())
    with Server([models], "--dtype=fp32") as server:
        yield server


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return python_package.make(tmp_path_factory.mktemp("package"))


def test_every_example_is_recorded():
    assert list(PAIRS) == list(PRINTED) == list(library_examples.MODELS)
    assert all(PRINTED.values())


@pytest.mark.parametrize("model", PAIRS)
def test_prints_what_the_library_prints(model, server, package):
    _, program = PAIRS[model]
    program = program.replace("localhost:8080", server.http).replace("localhost:9000", server.grpc)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(package)})
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    tolerance = 10 * TOLERANCE if model == "my-reader" else TOLERANCE  # Logits, with three digits.
    assert library_examples.same(printed, PRINTED[model], tolerance), (printed, PRINTED[model])


@pytest.mark.parametrize("other", [[], ["A 0.5010"], ["B 0.5000"], ["A 0.5000", "B 0.1"], ["A 1 0.5000"]])
def test_lines_that_differ_are_noticed(other):
    assert library_examples.same(["A 0.5000"], ["A 0.5002"], TOLERANCE)
    assert not library_examples.same(["A 0.5000"], other, TOLERANCE)
