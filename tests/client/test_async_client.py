"""The asyncio client against a server in this process that answers from a script."""

import asyncio
import contextlib
import time

import grpc
import pytest


def run(longview, server, scenario, **options):
    """Awaits scenario(client)."""

    async def main():
        async with longview.AsyncClient(server.address, **options) as client:
            return await scenario(client)

    return asyncio.run(asyncio.wait_for(main(), 60))


def test_every_function_reaches_its_call(longview, server):
    async def scenario(client):
        assert (await client.classify("some text")).labels[0].name == "some text"
        assert list((await client.embed("x", pooling="cls")).embedding) == [1.0, 2.0]
        assert (await client.answer("why?", "because", model="qa")).answers[0].text == "why?"
        assert (await client.classify_tokens("x", model="ner")).entities[0].label == "simple"
        assert (await client.fill_mask("x", model="lm")).masks[0].position == 5
        assert (await client.classify_image(b"12345", model="m")).labels[0].name == "5"
        assert (await client.detect(b"x", model="m", tile=800)).detections[0].x1 == 800
        features = await client.image_features(b"x", model="m", strides=[4, 8])
        assert [feature.stride for feature in features.features] == [4, 8]
        assert (await client.estimate(num_tokens=2000)).seconds == 2.0
        assert [model.name for model in await client.models()] == ["code"]

    run(longview, server, scenario)
    assert server.listed == 4, "classification, embedding, any, and models() itself"


def test_key_and_deadline_travel_with_the_call(longview, server):
    run(longview, server, lambda client: client.classify("x", model="code"), timeout=20,
        api_key="secret")
    assert server.metadata["authorization"] == "Bearer secret"
    assert 10 < server.time_left < 25


def test_many_at_once_are_answered_each(longview, server):
    async def scenario(client):
        return await asyncio.gather(*(client.classify(str(i), model="code") for i in range(300)))

    answers = run(longview, server, scenario, max_in_flight=7)
    assert [answer.labels[0].name for answer in answers] == [str(i) for i in range(300)]


def test_refusals_that_name_a_delay_are_repeated(longview, server):
    slept = []

    async def scenario(client):
        async def sleep(seconds):
            slept.append(seconds)

        client._sleep = sleep
        server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 0.5)]
        assert (await client.classify("x", model="code")).labels[0].name == "x"
        server.failures = [(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full", 1.0)]
        assert [piece.text async for piece in client.generate("a b", model="lm")] == ["a", "b"]
        server.failures = [(grpc.StatusCode.INVALID_ARGUMENT, "too long", 0.1)]
        with pytest.raises(longview.LongviewError) as error:
            await client.classify("x", model="code")
        assert (error.value.code, error.value.details) == \
            (grpc.StatusCode.INVALID_ARGUMENT, "too long")

    run(longview, server, scenario)
    assert 0.5 <= slept[0] < 0.61 and 1.0 <= slept[1] < 1.21 and len(slept) == 2


def test_generate_streams_and_its_errors_arrive(longview, server):
    async def scenario(client):
        pieces = [piece.text async for piece in client.generate("a b c", model="lm", max_tokens=5)]
        assert pieces == ["a", "b", "c"]
        seen = []
        with pytest.raises(longview.LongviewError) as error:
            async for piece in client.generate("a b", model="lm", seed=1):
                seen.append(piece.text)
        assert error.value.code == grpc.StatusCode.UNAVAILABLE and seen == ["a", "b"]
        with pytest.raises(ValueError):
            client.generate()

    run(longview, server, scenario)


def test_a_stream_that_is_left_gives_its_place_back(longview, server):
    async def scenario(client):
        for _ in range(3):
            async with contextlib.aclosing(client.generate("a b c", model="lm")) as pieces:
                async for piece in pieces:
                    assert piece.text == "a"
                    break
        assert (await client.classify("x", model="code")).labels

    run(longview, server, scenario, max_in_flight=1)


def test_a_cancelled_task_cancels_its_call(longview, server):
    async def scenario(client):
        server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 30.0)]
        task = asyncio.ensure_future(client.classify("x", model="code"))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.classify("y", model="code")).labels

    begin = time.monotonic()
    run(longview, server, scenario, max_in_flight=1)
    assert time.monotonic() - begin < 30


def test_documents_are_sent_in_parts(longview, server):
    async def lines():
        for part in ("a", "b"):
            yield part

    async def fails():
        yield "a"
        raise KeyError("my own")

    async def scenario(client):
        text = "word " * 40000
        assert (await client.open_document(text, model="lm", lease_seconds=9)).handle == text
        assert len(server.requests[-1]) > 3
        assert (await client.open_document(["a", "b"], model="lm")).handle == "ab"
        assert (await client.open_document(lines(), model="lm")).handle == "ab"
        with pytest.raises(KeyError, match="my own"):
            await client.open_document(fails(), model="lm")
        assert [piece.text async for piece in client.generate(document="ab")] == ["ab"]
        assert (await client.close_document("ab")).handle == "ab"

    run(longview, server, scenario)


def test_every_failure_is_one_kind_of_error(longview, server):
    async def nobody():
        async with longview.AsyncClient("localhost:1", timeout=5) as client:
            with pytest.raises(longview.LongviewError) as error:
                await client.classify("x")
            assert error.value.code == grpc.StatusCode.UNAVAILABLE and error.value.details

    async def closed(client):
        await client.classify("x", model="code")
        server.failures = [(grpc.StatusCode.UNAVAILABLE, "loading", 30.0)]
        waiting = asyncio.ensure_future(client.open_document(never(), model="lm"))
        await asyncio.sleep(0.2)
        await client.close()
        with pytest.raises(longview.LongviewError, match="the client is closed"):
            await waiting
        with pytest.raises(longview.LongviewError, match="the client is closed"):
            await client.classify("x", model="code")

    async def never():
        yield "a"
        await asyncio.sleep(60)

    asyncio.run(nobody())
    run(longview, server, closed)
