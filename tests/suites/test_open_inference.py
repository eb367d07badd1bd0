"""Bodies of the Open Inference Protocol against the models of two packages that serve and call it:
mlserver's, generated from the protocol's own description, and KServe's."""

import json
import pathlib
import subprocess

import pytest

import suite_packages
from goldens import GOLDEN
from server_process import ZOO, Server

WHEELS = {"mlserver": "mlserver-1.7.1-py3-none-any.whl", "kserve": "kserve-0.21.0-py3-none-any.whl"}
REQUIREMENTS = ["pydantic==2.13.5"]
SERVED = {"code-language": ZOO / "code-language", "code-lm": ZOO / "code-lm", "page-type": ZOO / "page-type",
          "embedder": GOLDEN / "sentence_transformers/bert_wordpiece_limit_128/model",
          "reader": GOLDEN / "longformer/text_question_answering/model",
          "reranker": GOLDEN / "xlm_roberta/text_reranker/model",
          "tagger": GOLDEN / "xlm_roberta/text_token_classification/model"}
TEXT = "int main() { return 0; }"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run():
    folders = [suite_packages.unpacked(project, name) for project, name in WHEELS.items()]
    python = suite_packages.python("open-inference", REQUIREMENTS)
    program = pathlib.Path(__file__).parent / "open_inference_models.py"

    def run(*jobs):
        done = subprocess.run([python, program, *folders], input=json.dumps(jobs), capture_output=True,
                              text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


@pytest.fixture(scope="module")
def server(run):
    with Server([",".join(f"{name}={path}" for name, path in SERVED.items())], "--allow_model_control") as server:
        yield server


@pytest.fixture
def check(run):
    """Fails if a body is not what one of the models says."""
    def check(body, *models):
        text = body.decode() if isinstance(body, bytes) else json.dumps(body)
        for model, wrong in zip(models, run(*({"check": model, "text": text} for model in models)), strict=True):
            assert not wrong, f"{model}: {wrong}\n{text[:1000]}"
    return check


def answer(got, status=200):
    assert got[0] == status, got[2]
    assert got[1]["Content-Type"].startswith("application/json")
    return got[2]


def test_server(server, check):
    check(answer(server.get("/v2")), "mlserver.MetadataServerResponse", "kserve.ServerMetadataResponse")
    check(answer(server.get("/v2/health/live")), "kserve.ServerLiveResponse")
    check(answer(server.get("/v2/health/ready")), "kserve.ServerReadyResponse")


@pytest.mark.parametrize("model", SERVED)
def test_metadata(server, check, model):
    for path in (f"/v2/models/{model}", f"/v2/models/{model}/versions/1"):
        check(answer(server.get(path)), "mlserver.MetadataModelResponse", "kserve.ModelMetadataResponse")
        check(answer(server.get(f"{path}/ready")), "kserve.ModelReadyResponse")


def test_repository(server, run, check):
    [asked] = run({"write": "mlserver.RepositoryIndexRequest", "members": {"ready": True}})
    for body in (b"", b"{}", asked):
        check(answer(server.post("/v2/repository/index", body)), "mlserver.RepositoryIndexResponse")


def texts(name, *values):
    return {"name": name, "shape": [len(values)], "datatype": "BYTES", "data": list(values)}


def ids(name, *values, datatype="INT64"):
    return {"name": name, "shape": [1, len(values)], "datatype": datatype, "data": list(values)}


def outputs(*names):
    return [{"name": name} for name in names]


# By a name: the model, the members of the request, the datatypes of the outputs.
REQUESTS = {
    "all outputs of a text": ("embedder", {"inputs": [texts("text", TEXT)]}, None),
    "labels of texts": ("code-language", {"inputs": [texts("text", TEXT, "def f(): pass")],
                                          "outputs": outputs("label", "probabilities")}, ["BYTES", "FP32"]),
    "an id and parameters": ("embedder", {"id": "seven", "parameters": {"truncate": True},
                                          "inputs": [texts("text", TEXT * 99)]}, None),
    "token ids": ("embedder", {"inputs": [ids("input_ids", 101, 30, 102)]}, None),
    "rows nested": ("embedder", {"inputs": [{"name": "input_ids", "shape": [2, 3], "datatype": "INT64",
                                             "data": [[101, 30, 102], [101, 31, 102]]}],
                                 "outputs": outputs("embedding")}, ["FP32"]),
    "a mask": ("embedder", {"inputs": [ids("input_ids", 101, 30, 102), ids("attention_mask", 1, 1, 1)]}, None),
    "a pair": ("reranker", {"inputs": [texts("text", "a"), texts("text_pair", "b")],
                            "outputs": outputs("logits", "probabilities")}, ["FP32", "FP32"]),
    "an answer": ("reader", {"inputs": [texts("text", TEXT), texts("question", "what is returned?")],
                             "outputs": outputs("answer", "start_logits")}, ["BYTES", "FP32"]),
    "entities": ("tagger", {"inputs": [texts("text", "Ada lived in London.")],
                            "outputs": outputs("entities")}, ["BYTES"]),
    "text that goes on": ("code-lm", {"parameters": {"max_tokens": 3}, "inputs": [texts("text", "int ")],
                                      "outputs": outputs("text", "token_ids", "num_tokens")},
                          ["BYTES", "INT64", "INT64"]),
    "pixels": ("page-type", {"inputs": [{"name": "pixel_values", "shape": [1, 3, 128, 128], "datatype": "FP32",
                                         "data": [0.5] * (3 * 128 * 128)}],
                             "outputs": outputs("label", "logits")}, ["BYTES", "FP32"]),
}


@pytest.mark.parametrize("package", WHEELS)
@pytest.mark.parametrize("name", REQUESTS)
def test_inference(server, run, check, package, name):
    """A request as the package writes it, and its answer."""
    model, members, datatypes = REQUESTS[name]
    [body] = run({"write": f"{package}.InferenceRequest", "members": {"id": "one", **members}})
    for path in (f"/v2/models/{model}/infer", f"/v2/models/{model}/versions/1/infer"):
        got = answer(server.post(path, body, headers={"Content-Type": "application/json"}))
        check(got, "mlserver.InferenceResponse", "kserve.InferenceResponse")
        read = json.loads(got)
        assert (read["model_name"], read["model_version"]) == (model, "1")
        assert read["id"] == members.get("id", "one")
        if datatypes:
            assert [output["datatype"] for output in read["outputs"]] == datatypes
            assert [{"name": output["name"]} for output in read["outputs"]] == members["outputs"]


def test_an_answer_without_an_id(server, check):
    """KServe's model wants one; the protocol has it only where the request has it."""
    got = answer(server.post("/v2/models/embedder/infer", {"inputs": [texts("text", TEXT)]}))
    check(got, "mlserver.InferenceResponse")


WRONG = {
    "a model": ("/v2/models/nobody/infer", {"inputs": [texts("text", TEXT)]}, 404),
    "a version": ("/v2/models/embedder/versions/9/infer", {"inputs": [texts("text", TEXT)]}, 404),
    "no inputs": ("/v2/models/embedder/infer", {}, 400),
    "a tensor": ("/v2/models/embedder/infer", {"inputs": [texts("words", TEXT)]}, 400),
    "a datatype": ("/v2/models/embedder/infer", {"inputs": [ids("input_ids", 1, datatype="INT5")]}, 400),
    "a shape": ("/v2/models/embedder/infer", {"inputs": [{**texts("text", TEXT), "shape": [2]}]}, 400),
    "an output": ("/v2/models/embedder/infer", {"inputs": [texts("text", TEXT)], "outputs": outputs("x")}, 400),
    "no JSON": ("/v2/models/embedder/infer", "{", 400),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_inference(server, check, name):
    path, body, status = WRONG[name]
    got = answer(server.post(path, body), status)
    check(got, "mlserver.InferenceErrorResponse")
    assert json.loads(got)["error"]


def test_errors_of_the_rest(server, check):
    check(answer(server.get("/v2/models/nobody"), 404), "mlserver.MetadataModelErrorResponse")
    check(answer(server.get("/v2/nothing"), 404), "mlserver.MetadataServerErrorResponse")
    for verb in ("Load", "Unload"):
        got = answer(server.post(f"/v2/repository/models/nobody/{verb.lower()}"), 404)
        check(got, f"mlserver.Repository{verb}ErrorResponse")
        assert json.loads(got)["error"]


FAULTS = {
    "a member is missing": lambda body: body["outputs"][0].pop("datatype"),
    "no outputs": lambda body: body.pop("outputs"),
    "a datatype of no protocol": lambda body: body["outputs"][0].update(datatype="FLOAT"),
    "a shape of strings": lambda body: body["outputs"][0].update(shape=["1", "32"]),
    "a name that is a number": lambda body: body.update(model_name=7),
    "a version that is a number": lambda body: body.update(model_version=1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_answer_is_noticed(server, check, fault):
    got = json.loads(answer(server.post("/v2/models/embedder/infer", {"inputs": [texts("text", TEXT)]})))
    check(got, "mlserver.InferenceResponse")
    FAULTS[fault](got)
    with pytest.raises(AssertionError, match=r"mlserver\.InferenceResponse: \d+ validation error"):
        check(got, "mlserver.InferenceResponse")
