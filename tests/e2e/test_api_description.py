"""/openapi.json: its examples are answered, linters and generated requests find nothing."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from server_process import ROOT, ZOO, Server

DOCUMENT = ROOT / "server/http/assets/openapi.json"
REDOCLY = "@redocly/cli@2.77.0"
SCHEMATHESIS = "schemathesis==4.32.5"

# What a bundled model lacks is shown by x-example, for a model that has it: these here.
OTHERS = {"tags": "xlm_roberta/text_token_classification", "qa": "longformer/text_question_answering",
          "mask": "longformer/text_fill_mask",
          "rerank": "sentence_transformers/reranker_modernbert_sigmoid"}


def operations():
    """(verb, path with its examples in place, operation) of all."""
    for path, verbs in json.loads(DOCUMENT.read_text())["paths"].items():
        for verb, operation in verbs.items():
            given = {p["name"]: p.get("example") for p in operation.get("parameters", [])}
            yield verb, re.sub(r"{(\w+)}", lambda name, given=given: given[name[1]], path), operation


def json_of(operation):
    return operation.get("requestBody", {}).get("content", {}).get("application/json")


def examples(member):
    """(path, body) of every operation that takes JSON and has one."""
    return [pytest.param(path, json_of(operation)[member], id=path)
            for _, path, operation in operations() if member in (json_of(operation) or {})]


@pytest.fixture(scope="module")
def controlled():
    folder = ROOT / "kernels/span"
    with Server([ZOO], "--allow_model_control=true", f"--search_folder={folder}") as server:
        yield server


@pytest.mark.parametrize("path", [path for verb, path, _ in operations() if verb == "get"])
def test_every_page_is_answered(controlled, path):
    query = "?path=plan.h" if path == "/v1/search/file" else ""
    assert controlled.get(path + query)[0] == 200


@pytest.mark.parametrize("path, body", examples("example"))
def test_every_example_is_answered_by_the_bundled_models(controlled, path, body):
    status, answer = controlled.post_json(path, body)
    assert status == 200, answer


@pytest.fixture(scope="module")
def others():
    models = [f"{name}={ROOT / 'tests/golden' / case / 'model'}" for name, case in OTHERS.items()]
    with Server([",".join(models)]) as server:
        yield server


@pytest.mark.parametrize("path, body", examples("x-example"))
def test_what_no_bundled_model_does_is_said_and_answered_by_one_that_does(controlled, others, path,
                                                                          body):
    status, answer = controlled.post_json(path, body)
    assert status == 404 and "no loaded model does" in str(answer), answer
    description, = [operation["description"] for _, at, operation in operations() if at == path]
    assert "No bundled model does this" in description
    status, answer = others.post_json(path, body)
    assert status == 200, answer


def test_every_operation_that_takes_json_shows_one():
    for _, path, operation in operations():
        assert json_of(operation) is None or {"example", "x-example"} & json_of(operation).keys(), path


@pytest.mark.slow
def test_redocly_has_no_remark(tmp_path):
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    done = subprocess.run(["npx", "--yes", REDOCLY, "lint", "--format=json", DOCUMENT],
                          cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problems"] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_generated_requests_are_answered_as_described(tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin/pip", "-q", "install", SCHEMATHESIS], check=True)
    # Tasks that no model has are answered with 400 or 404, models that still load with 503.
    (tmp_path / "schemathesis.toml").write_text(
        '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "4xx", 503]\n')
    with Server([ZOO]) as server:
        done = subprocess.run(
            [environment / "bin/schemathesis", "run", f"{server.url}/openapi.json", "--no-color",
             "--phases=examples,coverage,fuzzing", "--max-examples=60", "--seed=1",
             "--request-timeout=30", "--checks=not_a_server_error,status_code_conformance,"
             "content_type_conformance,response_headers_conformance,response_schema_conformance"],
            cwd=tmp_path, capture_output=True, text=True, timeout=800)
        assert done.returncode == 0, done.stdout[-20000:]
        assert server.process.poll() is None
