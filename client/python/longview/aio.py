"""The client for programs with asyncio."""

from __future__ import annotations

import asyncio
import random
import time
from typing import (Any, AsyncIterable, AsyncIterator, Awaitable, Callable, Dict, Iterable, List,
                    Optional, Union)

import grpc
import grpc.aio

from longview import calls
from longview.calls import Call, Document
from longview.connection import STUBS, Connection, only_model
from longview.errors import LongviewError, closed_error, error_of
from longview.methods import async_stream, async_unary
from longview.retry import RetryPolicy, next_delay
from longview.v1 import models_pb2, text_pb2


class AsyncClient:
    """As Client, with methods to await; belongs to one event loop. Close it, or use `async with`.

    max_in_flight: calls beyond so many wait here for others to end, which `timeout` does not count.
    Cancelling a task cancels its call.
    """

    def __init__(self, server: str = "localhost:9000", *, timeout: Optional[float] = 60.0,
                 api_key: Optional[str] = None, tls: bool = False, ca: Optional[str] = None,
                 cert: Optional[str] = None, key: Optional[str] = None,
                 retry: RetryPolicy = RetryPolicy(), max_in_flight: int = 128) -> None:
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight: {max_in_flight} is below 1")
        self._connection = Connection(server, api_key, tls, ca, cert, key)
        self._timeout = timeout
        self._retry = retry
        self._metadata = self._connection.metadata()
        self._max_in_flight = max_in_flight
        # Made by the first call, in its loop.
        self._channel: Optional[grpc.aio.Channel] = None
        self._stubs: Dict[str, Any] = {}
        self._semaphore: Any = None
        self._closed = False
        self._only_model: Dict[str, str] = {}  # By task.
        self._sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends calls under way; later ones fail."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    classify = async_unary(calls.classify)
    classify_tokens = async_unary(calls.classify_tokens)
    answer = async_unary(calls.answer)
    fill_mask = async_unary(calls.fill_mask)
    embed = async_unary(calls.embed)
    rerank = async_unary(calls.rerank)
    classify_image = async_unary(calls.classify_image)
    detect = async_unary(calls.detect)
    image_features = async_unary(calls.image_features)
    generate = async_stream(calls.generate)
    close_document = async_unary(calls.close_document)
    estimate = async_unary(calls.estimate)

    async def models(self) -> List[models_pb2.Model]:
        """The models of the server, loaded or not."""
        return list((await self._send(calls.list_models())).models)

    async def open_document(
            self, parts: Union[str, Iterable[Document], AsyncIterable[Document]], *,
            model: Optional[str] = None, lease_seconds: float = 0.0) -> text_pb2.Document:
        """As Client.open_document; the iterable may be asynchronous."""
        name = model or await self._model_for("text-generation")
        failures: List[Exception] = []

        async def requests() -> AsyncIterator[text_pb2.OpenDocumentRequest]:
            yield calls.open_request(name, lease_seconds)
            try:
                async for part in _each(parts):
                    yield calls.part_request(part)
            except Exception as error:
                failures.append(error)
                raise

        self._open()
        async with self._semaphore:
            try:
                document: text_pb2.Document = await self._stubs["Text"].OpenDocument(
                    requests(), timeout=self._timeout, metadata=self._metadata)
                return document
            except (grpc.RpcError, asyncio.CancelledError) as error:
                if failures:
                    raise failures[0] from error
                raise self._error_of(error) from error

    def _error_of(self, error: BaseException) -> BaseException:
        """The package's error; closing the channel looks like a cancelled task."""
        if isinstance(error, grpc.RpcError):
            return error_of(error)
        return closed_error() if self._closed else error

    def _open(self) -> None:
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._channel = self._connection.open(grpc.aio.insecure_channel,
                                                  grpc.aio.secure_channel)
            self._stubs = {name: stub(self._channel) for name, stub in STUBS.items()}
            self._semaphore = asyncio.Semaphore(self._max_in_flight)

    async def _model_for(self, task: str) -> str:
        """The only model with the task; asked for once."""
        if task not in self._only_model:
            self._only_model[task] = only_model(await self.models(), task)
        return self._only_model[task]

    async def _choose_model(self, call: Call[Any]) -> None:
        if call.task is not None and not call.request.model:
            call.request.model = await self._model_for(call.task)

    def _note(self, error: LongviewError, call: Call[Any]) -> None:
        if error.code == grpc.StatusCode.NOT_FOUND and call.task is not None:
            self._only_model.pop(call.task, None)  # Unloaded since: ask again next time.

    async def _send(self, call: Call[Any]) -> Any:
        await self._choose_model(call)
        self._open()
        method = getattr(self._stubs[call.service], call.method)
        async with self._semaphore:
            try:
                return await self._repeat(method, call.request)
            except LongviewError as error:
                self._note(error, call)
                raise

    async def _stream(self, call: Call[Any]) -> AsyncIterator[Any]:
        await self._choose_model(call)
        self._open()
        method = getattr(self._stubs[call.service], call.method)

        # Only a call that has said nothing yet is repeated: its first answer is awaited there.
        async def begin(request: Any, **options: Any) -> Any:
            answers = method(request, **options)
            return answers, await answers.read()

        async with self._semaphore:
            try:
                answers, message = await self._repeat(begin, call.request)
            except LongviewError as error:
                self._note(error, call)
                raise
            try:
                while message is not grpc.aio.EOF:
                    yield message
                    message = await answers.read()
            except (grpc.RpcError, asyncio.CancelledError) as error:
                raise self._error_of(error) from error
            finally:
                answers.cancel()

    async def _repeat(self, method: Callable[..., Any], request: Any) -> Any:
        deadline = time.monotonic() + self._timeout if self._timeout is not None else None
        attempts = 0
        while True:
            self._open()
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-6)
            try:
                return await method(request, timeout=left, metadata=self._metadata)
            except asyncio.CancelledError as error:
                raise self._error_of(error) from error
            except grpc.RpcError as error:
                attempts += 1
                left = float("inf") if deadline is None else deadline - time.monotonic()
                delay = next_delay(self._retry, error, attempts, random.random(), left)
                if delay is None:
                    raise error_of(error) from error
            await self._sleep(delay)


async def _each(parts: Union[str, Iterable[Document], AsyncIterable[Document]]
                ) -> AsyncIterator[Document]:
    if isinstance(parts, str):
        parts = calls.parts_of(parts)
    if isinstance(parts, AsyncIterable):
        async for part in parts:
            yield part
    else:
        for part in parts:
            yield part
