"""The Python package against a server in this process that answers from a script."""

import concurrent.futures
import threading

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2




class FakeServer:
    """Answers every text call with what it was asked; `failures` are used up first."""

    def __init__(self, longview):
        from longview.v1 import (models_pb2, models_pb2_grpc, text_pb2, text_pb2_grpc, types_pb2,
                                 vision_pb2, vision_pb2_grpc)
        self.failures, self.requests, self.metadata, self.time_left = [], [], {}, None
        self.models = [models_pb2.Model(name="code", task="text-classification", state="READY",
                                        tasks=["text-classification", "embedding"])]
        self.listed = 0
        fake = self

        class Text(text_pb2_grpc.TextServiceServicer):
            def Classify(self, request, context):
                fake.begin(request, context)
                label = types_pb2.Label(name=request.text or str(list(request.token_ids)), score=0.5)
                return types_pb2.ClassifyResponse(model=request.model, labels=[label])

            def Embed(self, request, context):
                fake.begin(request, context)
                return text_pb2.EmbedResponse(embedding=[1.0, 2.0])

            def AnswerQuestion(self, request, context):
                fake.begin(request, context)
                return text_pb2.AnswerQuestionResponse(
                    answers=[text_pb2.Answer(text=request.question)])

            def ClassifyTokens(self, request, context):
                fake.begin(request, context)
                return text_pb2.ClassifyTokensResponse(
                    entities=[text_pb2.Entity(label=request.aggregation)])

            def FillMask(self, request, context):
                fake.begin(request, context)
                return text_pb2.FillMaskResponse(masks=[text_pb2.Mask(position=request.top_k)])

            def Generate(self, request, context):
                fake.begin(request, context)
                words = request.text.split() or [request.document]
                for number, word in enumerate(words):
                    yield text_pb2.GenerateResponse(number=number, text=word)
                if request.seed:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "shutting down")

            def OpenDocument(self, requests, context):
                parts = list(requests)
                fake.begin(parts, context)
                text = "".join(part.text for part in parts)
                return text_pb2.Document(handle=text, model=parts[0].model,
                                         lease_seconds=parts[0].lease_seconds)

            def CloseDocument(self, request, context):
                fake.begin(request, context)
                return text_pb2.Document(handle=request.handle)

        class Vision(vision_pb2_grpc.VisionServiceServicer):
            def ClassifyImage(self, request, context):
                fake.begin(request, context)
                label = types_pb2.Label(name=str(len(request.image)))
                return types_pb2.ClassifyResponse(labels=[label])

            def DetectObjects(self, request, context):
                fake.begin(request, context)
                return vision_pb2.DetectObjectsResponse(
                    detections=[vision_pb2.Detection(label="cat", x1=request.tile.size)])

            def ExtractFeatures(self, request, context):
                fake.begin(request, context)
                return vision_pb2.ExtractFeaturesResponse(
                    features=[vision_pb2.FeatureMap(stride=s) for s in request.strides])

        class Models(models_pb2_grpc.ModelServiceServicer):
            def ListModels(self, request, context):
                fake.listed += 1
                return models_pb2.ListModelsResponse(models=fake.models)

            def Estimate(self, request, context):
                fake.begin(request, context)
                return models_pb2.EstimateResponse(seconds=request.num_tokens / 1000, fits=True)

        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        text_pb2_grpc.add_TextServiceServicer_to_server(Text(), self.server)
        vision_pb2_grpc.add_VisionServiceServicer_to_server(Vision(), self.server)
        models_pb2_grpc.add_ModelServiceServicer_to_server(Models(), self.server)
        self.address = f"localhost:{self.server.add_insecure_port('localhost:0')}"
        self.lock = threading.Lock()
        self.server.start()

    def begin(self, request, context):
        with self.lock:
            self.requests.append(request)
            self.metadata = dict(context.invocation_metadata())
            self.time_left = context.time_remaining()
            failure = self.failures.pop(0) if self.failures else None
        if failure is None:
            return
        code, message, retry_seconds = failure
        if retry_seconds is not None:
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromMilliseconds(int(retry_seconds * 1000))
            packed = any_pb2.Any()
            packed.Pack(info)
            details = status_pb2.Status(code=code.value[0], message=message, details=[packed])
            context.set_trailing_metadata(
                [("grpc-status-details-bin", details.SerializeToString())])
        context.abort(code, message)


@pytest.fixture
def server(longview):
    fake = FakeServer(longview)
    yield fake
    fake.server.stop(None).wait()


@pytest.fixture
def client(longview, server):
    with longview.Client(server.address, timeout=30) as client:
        client.slept = []
        client._sleep = client.slept.append
        yield client


def test_every_function_reaches_its_call(client, server):
    assert client.classify("some text").labels[0].name == "some text"
    assert client.classify([0, 7, 2]).labels[0].name == "[0, 7, 2]"
    assert list(client.embed("x", pooling="cls").embedding) == [1.0, 2.0]
    assert client.answer("why?", "because", model="qa").answers[0].text == "why?"
    assert client.classify_tokens("x", model="ner").entities[0].label == "simple"
    assert client.fill_mask("x", model="lm").masks[0].position == 5
    assert client.estimate(num_tokens=2000).seconds == 2.0
    assert client.estimate(width=1000, height=3000, model="page").fits
    assert (server.requests[-1].width, server.requests[-1].height) == (1000, 3000)
    assert [model.name for model in client.models()] == ["code"]


def test_pictures_are_bytes_or_paths(client, server, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"12345")
    for image in (b"12345", str(path), path):
        assert client.classify_image(image, model="m", top_k=2).labels[0].name == "5"
    found = client.detect(path, model="m", score_threshold=0.0, masks=True, tile=800, tile_overlap=9)
    assert found.detections[0].label == "cat" and found.detections[0].x1 == 800
    request = server.requests[-1]
    assert request.image == b"12345" and request.masks and request.tile.overlap == 9
    assert request.HasField("score_threshold") and not request.HasField("max_detections")
    client.detect(b"x", model="m")
    assert not server.requests[-1].HasField("tile")
    assert [f.stride for f in client.image_features(b"x", model="m", strides=[4, 8]).features] == [4, 8]


def test_fields_arrive_as_given(client, server):
    client.classify("a", pair="b", top_k=3, truncate=True, return_logits=True,
                    global_positions=[0, 5])
    request = server.requests[-1]
    assert (request.text_pair, request.top_k, request.truncate, request.return_logits) == \
        ("b", 3, True, True)
    assert list(request.global_positions) == [0, 5]
    client.embed("a")
    assert not server.requests[-1].HasField("normalize")
    client.embed("a", normalize=False)
    assert server.requests[-1].HasField("normalize") and not server.requests[-1].normalize


def test_the_only_model_with_the_task_is_asked_for_once(client, server):
    client.classify("x")
    client.classify("y")
    assert server.requests[-1].model == "code"
    assert server.listed == 1
    with pytest.raises(ValueError, match="question-answering are none"):
        client.answer("q", "d")


def test_two_models_need_a_name(longview, server):
    from longview.v1 import models_pb2
    server.models.append(models_pb2.Model(name="other", task="text-classification", state="READY"))
    with longview.Client(server.address) as client:
        with pytest.raises(ValueError, match="code, other"):
            client.classify("x")
        assert client.classify("x", model="other").model == "other"


def test_an_unloaded_model_is_looked_up_again(client, server):
    client.classify("x")
    server.failures = [(grpc.StatusCode.NOT_FOUND, "model code", None)]
    with pytest.raises(Exception, match="NOT_FOUND"):
        client.classify("x")
    client.classify("x")
    assert server.listed == 2


def test_refusals_that_name_a_delay_are_repeated(client, server):
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 0.5),
                       (grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full", 1.0)]
    assert client.classify("x", model="code").labels[0].name == "x"
    assert len(server.requests) == 3
    assert 0.5 <= client.slept[0] < 0.61
    assert 1.5 <= client.slept[1] < 1.81


@pytest.mark.parametrize("failure", [
    (grpc.StatusCode.UNAVAILABLE, "connection lost", None),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "message too large", None),
    (grpc.StatusCode.INTERNAL, "bug", 0.1),
    (grpc.StatusCode.INVALID_ARGUMENT, "too long", 0.1),
])
def test_other_failures_reach_the_caller_at_once(longview, client, server, failure):
    server.failures = [failure]
    with pytest.raises(longview.LongviewError) as raised:
        client.classify("x", model="code")
    assert raised.value.code == failure[0]
    assert raised.value.details == failure[1]
    assert len(server.requests) == 1 and not client.slept


def test_attempts_and_deadline_bound_the_repetitions(longview, client, server):
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 0.01)] * 9
    with pytest.raises(longview.LongviewError):
        client.classify("x", model="code")
    assert len(server.requests) == 5
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 60.0)]
    with pytest.raises(longview.LongviewError):
        client.classify("x", model="code")
    assert len(server.requests) == 6, "a wait beyond the deadline is not begun"


def test_key_and_deadline_travel_with_the_call(longview, server):
    with longview.Client(server.address, timeout=20, api_key="secret") as client:
        client.classify("x", model="code")
    assert server.metadata["authorization"] == "Bearer secret"
    assert 10 < server.time_left < 25
    with longview.Client(server.address, timeout=None) as client:
        client.classify("x", model="code")
    assert "authorization" not in server.metadata
    assert server.time_left is None or server.time_left > 1e6


def test_estimate_wants_exactly_one_of_text_and_length(client):
    with pytest.raises(ValueError):
        client.estimate(model="code")
    with pytest.raises(ValueError):
        client.estimate("x", num_tokens=3, model="code")
    with pytest.raises(ValueError):
        client.estimate("x", width=3, height=4, model="code")


def test_generate_streams_and_options_arrive(client, server):
    pieces = client.generate("a b c", model="lm", max_tokens=5, temperature=0.5, stop=["x"])
    assert [piece.text for piece in pieces] == ["a", "b", "c"]
    request = server.requests[-1]
    assert (request.max_tokens, request.temperature, list(request.stop)) == (5, 0.5, ["x"])
    assert not request.HasField("seed")
    with pytest.raises(ValueError):
        client.generate("a", model="lm", no_such_option=1)
    with pytest.raises(ValueError):
        client.generate()


def test_generate_is_repeated_only_before_its_first_piece(longview, client, server):
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 0.5)]
    assert [piece.text for piece in client.generate("a b", model="lm")] == ["a", "b"]
    assert len(server.requests) == 2
    seen = []
    with pytest.raises(longview.LongviewError) as raised:
        for piece in client.generate("a b", model="lm", seed=1):
            seen.append(piece.text)
    assert raised.value.code == grpc.StatusCode.UNAVAILABLE
    assert seen == ["a", "b"] and len(server.requests) == 3


def test_documents_are_sent_in_parts(client, server):
    text = "word " * 40000
    document = client.open_document(text, model="lm", lease_seconds=9)
    assert (document.handle, document.model, document.lease_seconds) == (text, "lm", 9)
    assert len(server.requests[-1]) > 3
    assert client.open_document(["a", "b"], model="lm").handle == "ab"
    assert [piece.text for piece in client.generate(document="ab")] == ["ab"]
    assert client.close_document("ab").handle == "ab"
