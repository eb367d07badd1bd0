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

# No bundled model does these.
NOT_BUNDLED = {"/v1/classify-tokens", "/v1/answer", "/v1/fill-mask", "/v1/rerank", "/v2/rerank",
               "/rerank", "/score"}


def examples():
    """(path, body) of every operation that takes JSON."""
    for path, verbs in json.loads(DOCUMENT.read_text())["paths"].items():
        for operation in verbs.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is None:
                continue
            given = {p["name"]: p.get("example") for p in operation.get("parameters", [])}
            yield re.sub(r"{(\w+)}", lambda name, given=given: given[name[1]], path), body["example"]


@pytest.fixture(scope="module")
def controlled():
    with Server([ZOO], "--allow_model_control=true") as server:
        yield server


@pytest.mark.parametrize("path, body", [pytest.param(*example, id=example[0])
                                        for example in examples()])
def test_every_example_is_answered(controlled, path, body):
    status, answer = controlled.post_json(path, body)
    if path in NOT_BUNDLED:
        assert status == 404 and "no loaded model does" in str(answer), answer
    else:
        assert status == 200, answer


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
