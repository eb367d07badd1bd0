"""The client for programs with threads."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

import grpc

from longview import calls
from longview.calls import Call, Document
from longview.connection import STUBS, Connection, only_model
from longview.errors import LongviewError, closed_error, error_of
from longview.methods import stream, unary
from longview.retry import RetryPolicy, next_delay
from longview.v1 import models_pb2, text_pb2


class Client:
    """A connection to one server; may be shared by threads. Close it, or use `with`.

    server: host:port. timeout: seconds for a call with all its repetitions, None = no limit.
    ca: a PEM file with the certificates to trust; implies tls. cert, key: PEM files of the
    client's own certificate, for a server that asks for one; imply tls.

    Every call that fails raises LongviewError; wrong arguments are ValueError or TypeError.
    """

    def __init__(self, server: str = "localhost:9000", *, timeout: Optional[float] = 60.0,
                 api_key: Optional[str] = None, tls: bool = False, ca: Optional[str] = None,
                 cert: Optional[str] = None, key: Optional[str] = None,
                 retry: RetryPolicy = RetryPolicy()) -> None:
        connection = Connection(server, api_key, tls, ca, cert, key)
        self._timeout = timeout
        self._retry = retry
        self._metadata = connection.metadata()
        self._channel = connection.open(grpc.insecure_channel, grpc.secure_channel)
        self._stubs: Dict[str, Any] = {name: stub(self._channel) for name, stub in STUBS.items()}
        self._closed = False
        self._lock = threading.Lock()
        self._only_model: Dict[str, str] = {}  # By task; guarded by _lock.
        self._sleep = time.sleep

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends calls under way; later ones fail."""
        self._closed = True
        self._channel.close()

    classify = unary(calls.classify)
    classify_tokens = unary(calls.classify_tokens)
    answer = unary(calls.answer)
    fill_mask = unary(calls.fill_mask)
    embed = unary(calls.embed)
    rerank = unary(calls.rerank)
    classify_image = unary(calls.classify_image)
    detect = unary(calls.detect)
    image_features = unary(calls.image_features)
    generate = stream(calls.generate)
    close_document = unary(calls.close_document)
    estimate = unary(calls.estimate)

    def models(self) -> List[models_pb2.Model]:
        """The models of the server, loaded or not."""
        return list(self._send(calls.list_models()).models)

    def open_document(self, parts: Union[str, Iterable[Document]], *,
                      model: Optional[str] = None, lease_seconds: float = 0.0
                      ) -> text_pb2.Document:
        """Reads a text, or an iterable of its parts, once; `handle` of the answer then serves
        many calls of generate until it is closed or unused for lease_seconds (0 = the server's
        default). Not repeated: parts are given once. An error of `parts` is raised as it is.
        """
        name = model or self._model_for("text-generation")
        failures: List[Exception] = []

        def requests() -> Iterator[text_pb2.OpenDocumentRequest]:
            yield calls.open_request(name, lease_seconds)
            try:
                for part in calls.parts_of(parts) if isinstance(parts, str) else parts:
                    yield calls.part_request(part)
            except Exception as error:
                failures.append(error)
                raise

        self._check_open()
        try:
            document: text_pb2.Document = self._stubs["Text"].OpenDocument(
                requests(), timeout=self._timeout, metadata=self._metadata)
            return document
        except grpc.RpcError as error:
            if failures:
                raise failures[0] from error
            raise error_of(error) from error

    def _check_open(self) -> None:
        if self._closed:
            raise closed_error()

    def _model_for(self, task: str) -> str:
        """The only model with the task; asked for once."""
        with self._lock:
            if task in self._only_model:
                return self._only_model[task]
        name = only_model(self.models(), task)
        with self._lock:
            self._only_model[task] = name
        return name

    def _send(self, call: Call[Any]) -> Any:
        return self._send_by(getattr(self._stubs[call.service], call.method), call)

    def _send_by(self, method: Callable[..., Any], call: Call[Any]) -> Any:
        if call.task is not None and not call.request.model:
            call.request.model = self._model_for(call.task)
        try:
            return self._repeat(method, call.request)
        except LongviewError as error:
            if error.code == grpc.StatusCode.NOT_FOUND and call.task is not None:
                with self._lock:  # Unloaded since: ask again next time.
                    self._only_model.pop(call.task, None)
            raise

    def _stream(self, call: Call[Any]) -> Iterator[Any]:
        method = getattr(self._stubs[call.service], call.method)

        # Only a call that has said nothing yet is repeated: its first answer is awaited there.
        def begin(request: Any, **options: Any) -> Any:
            answers = method(request, **options)
            return answers, next(answers, None)

        answers, message = self._send_by(begin, call)
        try:
            while message is not None:
                yield message
                message = next(answers, None)
        except grpc.RpcError as error:
            raise error_of(error) from error
        finally:
            answers.cancel()

    def _repeat(self, method: Callable[..., Any], request: Any) -> Any:
        deadline = time.monotonic() + self._timeout if self._timeout is not None else None
        attempts = 0
        while True:
            self._check_open()
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-6)
            try:
                return method(request, timeout=left, metadata=self._metadata)
            except grpc.RpcError as error:
                attempts += 1
                left = float("inf") if deadline is None else deadline - time.monotonic()
                delay = next_delay(self._retry, error, attempts, random.random(), left)
                if delay is None:
                    raise error_of(error) from error
            self._sleep(delay)
