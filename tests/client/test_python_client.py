"""The Python package against a server in this process that answers from a script."""

import inspect
import pathlib
import re

import grpc
import pytest


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
    for field in ("normalize", "truncate", "chunk_tokens"):
        assert not server.requests[-1].HasField(field)
    client.embed("a", truncate=False, chunk_tokens=9, chunk_overlap=3)
    request = server.requests[-1]
    assert request.HasField("truncate") and not request.truncate
    assert (request.chunk_tokens, request.chunk_overlap) == (9, 3)
    client.embed("a", normalize=False)
    assert server.requests[-1].HasField("normalize") and not server.requests[-1].normalize


def test_the_only_model_with_the_task_is_asked_for_once(longview, client, server):
    client.classify("x")
    client.classify("y")
    assert server.requests[-1].model == "code"
    assert server.listed == 1
    with pytest.raises(longview.LongviewError, match="question-answering are none") as error:
        client.answer("q", "d")
    assert error.value.code == grpc.StatusCode.INVALID_ARGUMENT


def test_two_models_need_a_name(longview, server):
    from longview.v1 import models_pb2
    server.models.append(models_pb2.Model(name="other", task="text-classification", state="READY"))
    with longview.Client(server.address) as client:
        with pytest.raises(longview.LongviewError, match="code, other"):
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


def test_an_error_of_the_parts_is_raised_as_it_is(client):
    def parts():
        yield "a"
        raise KeyError("my own")

    with pytest.raises(KeyError, match="my own"):
        client.open_document(parts(), model="lm")


def test_every_failure_is_one_kind_of_error(longview, server):
    with longview.Client("localhost:1", timeout=5) as nobody:
        for call in (nobody.models, lambda: nobody.classify("x"), lambda: list(nobody.generate("x")),
                     lambda: nobody.open_document("x"), lambda: nobody.estimate(num_tokens=3)):
            with pytest.raises(longview.LongviewError) as error:
                call()
            assert error.value.code == grpc.StatusCode.UNAVAILABLE and error.value.details
    client = longview.Client(server.address)
    client.classify("x", model="code")
    client.close()
    for call in (client.models, lambda: client.classify("x", model="code"),
                 lambda: list(client.generate("x", model="lm")),
                 lambda: client.open_document("x", model="lm")):
        with pytest.raises(longview.LongviewError, match="the client is closed"):
            call()


def test_its_version_is_the_servers(longview):
    project = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text()
    assert re.search(r"project\(longview VERSION (\S+)", project)[1] == longview.__version__


def test_editors_see_the_parameters(longview):
    for name, method in inspect.getmembers(longview.Client, inspect.isfunction):
        if name.startswith("_") or name == "close":
            continue
        twin = getattr(longview.AsyncClient, name)
        assert method.__doc__ and twin.__doc__, name
        assert list(inspect.signature(method).parameters) == list(inspect.signature(twin).parameters)
    assert list(inspect.signature(longview.Client.classify).parameters)[:3] == \
        ["self", "document", "model"]
