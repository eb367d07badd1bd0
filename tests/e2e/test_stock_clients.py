"""Stock clients, unpatched, against the real binary: tritonclient, kserve, openai, grpcurl, ghz."""

import asyncio
import json
import pathlib
import subprocess
import sys

import numpy as np
import openai
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

from goldens import expected, items, tensors
from server_process import GOLDEN

CASE = GOLDEN / "longformer/classification"
IDS = {index: ids[None] for index, ids in items(tensors(CASE / "inputs.safetensors"),
                                                "input_ids").items()}
WANTED = tensors(CASE / "expected.safetensors")


def check(logits, index):
    assert np.abs(logits[0] - expected(WANTED, f"logits.{index}")).max() < 1e-4


def tensor(module, ids, **kwargs):
    given = module.InferInput("input_ids", list(ids.shape), "INT64")
    given.set_data_from_numpy(ids, **kwargs)
    return [given]


@pytest.mark.client("tritonclient", "inference by gRPC and HTTP, also asyncio, streams, binary, compressed; metadata, statistics, repository")  # noqa: E501
class TestTriton:
    def test_grpc(self, golden_server):
        client = tritonclient.grpc.InferenceServerClient(golden_server.grpc)
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("classification")
        assert not client.is_model_ready("no-such-model")
        metadata = client.get_server_metadata()
        assert metadata.name == "longview"
        assert sorted(metadata.extensions) == ["binary_tensor_data", "model_configuration",
                                               "model_repository", "parameters", "statistics"]
        model = client.get_model_metadata("classification")
        assert {tensor.name for tensor in model.inputs} >= {"input_ids", "attention_mask"}
        config = client.get_model_config("classification").config
        assert config.max_batch_size == 0 and config.backend == "longview"
        assert all(given.optional for given in config.input)
        for index, ids in IDS.items():
            check(client.infer("classification", tensor(tritonclient.grpc, ids)).as_numpy("logits"),
                  index)
        statistics = client.get_inference_statistics("classification").model_stats[0]
        assert statistics.inference_stats.success.count >= len(IDS)

    def test_what_is_not_served_says_what_to_use(self, golden_server):
        for module, address in ((tritonclient.grpc, golden_server.grpc),
                                (tritonclient.http, golden_server.http)):
            client = module.InferenceServerClient(address)
            for call, part in ((client.get_trace_settings, "--otlp_endpoint"),
                               (client.get_log_settings, "--log_level"),
                               (client.get_system_shared_memory_status, "send tensors in the request"),
                               (client.get_cuda_shared_memory_status, "send tensors in the request")):
                with pytest.raises(tritonclient.utils.InferenceServerException, match=part):
                    call()

    def test_grpc_stream(self, golden_server):
        client = tritonclient.grpc.InferenceServerClient(golden_server.grpc)
        answers = []
        client.start_stream(lambda result, error: answers.append((result, error)))
        for index, ids in IDS.items():
            client.async_stream_infer("classification", tensor(tritonclient.grpc, ids),
                                      request_id=str(index))
        client.async_stream_infer("no-such-model", tensor(tritonclient.grpc, IDS[0]),
                                  request_id="bad")
        client.stop_stream()
        good = {result.get_response().id: result for result, error in answers if error is None}
        assert sorted(good) == sorted(map(str, IDS))
        for index in IDS:
            check(good[str(index)].as_numpy("logits"), index)
        errors = [error for _, error in answers if error is not None]
        assert len(errors) == 1 and "no-such-model" in str(errors[0])

    @pytest.mark.parametrize("binary_in", [True, False])
    @pytest.mark.parametrize("binary_out", [True, False])
    def test_http(self, golden_server, binary_in, binary_out):
        module = tritonclient.http
        client = module.InferenceServerClient(golden_server.http)
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("classification")
        assert not client.is_model_ready("no-such-model")
        for index, ids in IDS.items():
            outputs = [module.InferRequestedOutput("logits", binary_data=binary_out)]
            answer = client.infer("classification", tensor(module, ids, binary_data=binary_in),
                                  outputs=outputs, request_id="r1")
            assert answer.get_response()["id"] == "r1"
            check(answer.as_numpy("logits"), index)

    def test_http_metadata(self, golden_server):
        client = tritonclient.http.InferenceServerClient(golden_server.http)
        properties = client.get_model_metadata("classification")["properties"]
        assert properties["task"] == "text-classification"
        assert properties["family"] == "longformer"
        assert properties["max_tokens"] == "1200" and properties["dtype"] == "fp32"

    def test_http_repository(self, golden_server):
        client = tritonclient.http.InferenceServerClient(golden_server.http)
        index = {model["name"]: model for model in client.get_model_repository_index()}
        assert index["classification"]["state"] == "READY"
        with pytest.raises(Exception, match="(?i)config"):
            client.load_model("classification", config="{}")

    def test_compressed_requests(self, golden_server):
        module = tritonclient.http
        client = module.InferenceServerClient(golden_server.http)
        for encoding in ("gzip", "deflate"):
            answer = client.infer("classification", tensor(module, IDS[5]),
                                  request_compression_algorithm=encoding)
            check(answer.as_numpy("logits"), 5)

    def test_aio(self, golden_server):
        async def both():
            async with tritonclient.grpc.aio.InferenceServerClient(golden_server.grpc) as client:
                answer = await client.infer("classification", tensor(tritonclient.grpc, IDS[3]))
                check(answer.as_numpy("logits"), 3)
            async with tritonclient.http.aio.InferenceServerClient(golden_server.http) as client:
                answer = await client.infer("classification", tensor(tritonclient.http, IDS[3]))
                check(answer.as_numpy("logits"), 3)

        asyncio.run(both())


@pytest.mark.client("kserve", "inference by REST and gRPC, health")
@pytest.mark.parametrize("transport", ["rest", "grpc"])
def test_kserve(golden_server, transport):
    """In a process of its own: kserve and tritonclient register the same protobuf names."""
    script = pathlib.Path(__file__).parent / "kserve_call.py"
    address = golden_server.url if transport == "rest" else golden_server.grpc
    done = subprocess.run([sys.executable, script, transport, address, "classification",
                           json.dumps(IDS[4].tolist())],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    check(np.array(json.loads(done.stdout.splitlines()[-1])), 4)


@pytest.mark.client("openai", "embeddings, models")
class TestOpenAI:
    def client(self, server):
        return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)

    def test_embeddings(self, golden_server):
        case = GOLDEN / "longformer/embeddings"
        inputs = items(tensors(case / "inputs.safetensors"), "input_ids")
        outputs = tensors(case / "expected.safetensors")
        client = self.client(golden_server)
        alone = [index for index in inputs if index % 2 == 0]  # odd items have global masks
        answer = client.embeddings.create(model="embeddings",
                                          input=[inputs[index].tolist() for index in alone])
        assert [entry.index for entry in answer.data] == list(range(len(alone)))
        for entry, index in zip(answer.data, alone, strict=True):
            assert np.abs(np.array(entry.embedding) - outputs[f"mean.{index}"]).max() < 1e-4
        assert answer.usage.prompt_tokens == sum(len(inputs[index]) for index in alone)
        floats = client.embeddings.create(model="embeddings", input=inputs[6].tolist(),
                                          encoding_format="float")
        assert np.abs(np.array(floats.data[0].embedding) - outputs["mean.6"]).max() < 1e-4

    def test_models(self, golden_server):
        client = self.client(golden_server)
        assert "classification" in [model.id for model in client.models.list()]
        assert client.models.retrieve("classification").task == "text-classification"
        with pytest.raises(openai.NotFoundError, match="classification"):
            client.models.retrieve("no-such-model")

    def test_errors_are_typed(self, golden_server):
        client = self.client(golden_server)
        with pytest.raises(openai.BadRequestError) as caught:
            client.embeddings.create(model="embeddings", input=[1, 2, 3], dimensions=7000)
        assert caught.value.body["param"] == "dimensions"
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="no-such-model", input=[1])


@pytest.mark.client("grpcurl", "reflection, typed and open inference calls, health")
class TestGrpcurl:
    def call(self, server, *arguments):
        return subprocess.run(["grpcurl", "-plaintext", *arguments[:-1], server.grpc,
                               arguments[-1]], capture_output=True, text=True, timeout=60)

    def test_reflection_lists_and_describes(self, zoo_server):
        listed = self.call(zoo_server, "list").stdout.split()
        for service in ("longview.v1.TextService", "longview.v1.ModelService",
                        "longview.v1.VisionService", "inference.GRPCInferenceService",
                        "grpc.health.v1.Health"):
            assert service in listed
        assert "ClassifyRequest" in subprocess.run(
            ["grpcurl", "-plaintext", zoo_server.grpc, "describe", "longview.v1.TextService"],
            capture_output=True, text=True, timeout=60).stdout

    def test_classify(self, zoo_server):
        done = self.call(zoo_server, "-d", json.dumps({"model": "code-language",
                                              "text": "def f(x):\n    return x\n"}),
                         "longview.v1.TextService/Classify")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["labels"][0]["name"]

    def test_typed_contents(self, golden_server):
        request = {"model_name": "classification",
                   "inputs": [{"name": "input_ids", "datatype": "INT64",
                               "shape": list(IDS[2].shape),
                               "contents": {"int64_contents": IDS[2][0].tolist()}}]}
        done = self.call(golden_server, "-d", json.dumps(request),
                         "inference.GRPCInferenceService/ModelInfer")
        assert done.returncode == 0, done.stderr
        outputs = {output["name"]: output for output in json.loads(done.stdout)["outputs"]}
        check(np.array([outputs["logits"]["contents"]["fp32_contents"]]), 2)

    def test_health(self, zoo_server):
        for name in ("", "readiness", "liveness", "code-language", "longview.v1.TextService"):
            done = self.call(zoo_server, "-d", json.dumps({"service": name}),
                             "grpc.health.v1.Health/Check")
            assert json.loads(done.stdout)["status"] == "SERVING", name
        unknown = self.call(zoo_server, "-d", '{"service": "nobody"}',
                            "grpc.health.v1.Health/Check")
        assert "NotFound" in unknown.stderr


@pytest.mark.client("ghz", "load on a typed call")
def test_ghz(golden_server, tmp_path):
    """ghz through reflection: every call is answered."""
    data = tmp_path / "data.json"
    data.write_text(json.dumps([{"model": "classification", "token_ids": ids[0].tolist()}
                                for ids in IDS.values()]))
    report = tmp_path / "report.json"
    done = subprocess.run(["ghz", "--insecure", "--call", "longview.v1.TextService/Classify",
                           "-D", str(data), "-n", "200", "-c", "8", "--connections", "4",
                           "-O", "json", "-o", str(report), golden_server.grpc],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    result = json.loads(report.read_text())
    assert result["statusCodeDistribution"] == {"OK": 200}
