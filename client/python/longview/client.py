"""Typed calls with deadlines and repetition of refused calls."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

import grpc

from longview.retry import RetryPolicy, next_delay
from longview.v1 import (models_pb2, models_pb2_grpc, text_pb2, text_pb2_grpc, types_pb2,
                         vision_pb2, vision_pb2_grpc)

# A document: text, or token ids with the special tokens that the model expects.
Document = Union[str, Sequence[int]]

# A picture: the bytes of a JPEG, PNG or WebP file, or its path.
Image = Union[bytes, str, "os.PathLike[str]"]

_MESSAGE_BYTES = 64 << 20
_PART_CHARACTERS = 64 << 10  # Size of a part of a text that is sent as a document.


class LongviewError(Exception):
    """A call that failed. `code` is the grpc.StatusCode, `details` the server's message."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details


def _image_bytes(image: Image) -> bytes:
    if isinstance(image, bytes):
        return image
    with open(image, "rb") as file:
        return file.read()


def _read(path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def _channel(server: str, tls: bool, ca: Optional[str], cert: Optional[str],
             key: Optional[str]) -> grpc.Channel:
    if (cert is None) != (key is None):
        raise ValueError("cert and key: one was given without the other")
    options = [("grpc.max_receive_message_length", _MESSAGE_BYTES),
               ("grpc.max_send_message_length", _MESSAGE_BYTES)]
    if not tls and ca is None and cert is None:
        return grpc.insecure_channel(server, options)
    credentials = grpc.ssl_channel_credentials(_read(ca), _read(key), _read(cert))
    return grpc.secure_channel(server, credentials, options)


class Client:
    """A connection to one server; may be shared by threads. Close it, or use `with`.

    server: host:port. timeout: seconds for a call with all its repetitions, None = no limit.
    ca: a PEM file with the certificates to trust; implies tls. cert, key: PEM files of the
    client's own certificate, for a server that asks for one; imply tls.

    Every call takes model (it may be left out if exactly one loaded model has the task) and
    raises LongviewError.
    """

    def __init__(self, server: str = "localhost:9000", *, timeout: Optional[float] = 60.0,
                 api_key: Optional[str] = None, tls: bool = False, ca: Optional[str] = None,
                 cert: Optional[str] = None, key: Optional[str] = None,
                 retry: RetryPolicy = RetryPolicy()) -> None:
        self._timeout = timeout
        self._retry = retry
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._channel = _channel(server, tls, ca, cert, key)
        self._text = text_pb2_grpc.TextServiceStub(self._channel)
        self._vision = vision_pb2_grpc.VisionServiceStub(self._channel)
        self._models = models_pb2_grpc.ModelServiceStub(self._channel)
        self._lock = threading.Lock()
        self._only_model: Dict[str, str] = {}  # By task; guarded by _lock.
        self._sleep = time.sleep

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def classify(self, document: Document, *, model: Optional[str] = None, top_k: int = 0,
                 pair: Optional[Document] = None, truncate: bool = False,
                 return_logits: bool = False,
                 global_positions: Sequence[int] = ()) -> types_pb2.ClassifyResponse:
        """The classes, best first; top_k 0 = all. pair: the second text of a pair task."""
        task = "text-classification"
        request = text_pb2.ClassifyRequest(top_k=top_k)
        self._fill(request, document, model, task, truncate, return_logits, global_positions)
        if isinstance(pair, str):
            request.text_pair = pair
        elif pair is not None:
            request.token_ids_pair.extend(pair)
        return self._call(self._text.Classify, request, task)

    def classify_tokens(self, document: Document, *, model: Optional[str] = None,
                        aggregation: str = "simple", truncate: bool = False,
                        return_logits: bool = False, global_positions: Sequence[int] = ()
                        ) -> text_pb2.ClassifyTokensResponse:
        """The entities; aggregation is none, simple, first, average or max."""
        task = "token-classification"
        request = text_pb2.ClassifyTokensRequest(aggregation=aggregation)
        self._fill(request, document, model, task, truncate, return_logits, global_positions)
        return self._call(self._text.ClassifyTokens, request, task)

    def answer(self, question: str, document: Document, *, model: Optional[str] = None,
               top_k: int = 1, max_answer_tokens: int = 0, truncate: bool = False,
               return_logits: bool = False, global_positions: Sequence[int] = ()
               ) -> text_pb2.AnswerQuestionResponse:
        """The best spans of the document; max_answer_tokens 0 = the server's default."""
        task = "question-answering"
        request = text_pb2.AnswerQuestionRequest(question=question, top_k=top_k,
                                                 max_answer_tokens=max_answer_tokens)
        self._fill(request, document, model, task, truncate, return_logits, global_positions)
        return self._call(self._text.AnswerQuestion, request, task)

    def fill_mask(self, document: Document, *, model: Optional[str] = None, top_k: int = 5,
                  truncate: bool = False, return_logits: bool = False,
                  global_positions: Sequence[int] = ()) -> text_pb2.FillMaskResponse:
        """The most likely tokens for every mask of the document."""
        task = "fill-mask"
        request = text_pb2.FillMaskRequest(top_k=top_k)
        self._fill(request, document, model, task, truncate, return_logits, global_positions)
        return self._call(self._text.FillMask, request, task)

    def embed(self, document: Document, *, model: Optional[str] = None, pooling: str = "",
              normalize: Optional[bool] = None, truncate: bool = False,
              global_positions: Sequence[int] = ()) -> text_pb2.EmbedResponse:
        """The document's vector; pooling is cls, mean or pooler, empty = the model's."""
        task = "embedding"
        request = text_pb2.EmbedRequest(pooling=pooling, normalize=normalize)
        self._fill(request, document, model, task, truncate, False, global_positions)
        return self._call(self._text.Embed, request, task)

    def rerank(self, query: str, documents: Sequence[str], *, model: Optional[str] = None,
               top_n: int = 0, truncate: bool = False, raw_scores: bool = False,
               return_documents: bool = False) -> text_pb2.RerankResponse:
        """How well each document answers the query, best first; top_n 0 = all."""
        task = "rerank"
        request = text_pb2.RerankRequest(
            model=model or self._model_for(task), query=query, documents=documents, top_n=top_n,
            truncate=truncate, raw_scores=raw_scores, return_documents=return_documents)
        return self._call(self._text.Rerank, request, task)

    def classify_image(self, image: Image, *, model: Optional[str] = None, top_k: int = 0,
                       return_logits: bool = False) -> types_pb2.ClassifyResponse:
        """The classes of a picture (JPEG, PNG or WebP), best first; top_k 0 = all."""
        task = "image-classification"
        request = vision_pb2.ClassifyImageRequest(
            model=model or self._model_for(task), image=_image_bytes(image), top_k=top_k,
            return_logits=return_logits)
        return self._call(self._vision.ClassifyImage, request, task)

    def detect(self, image: Image, *, model: Optional[str] = None,
               score_threshold: Optional[float] = None, max_detections: Optional[int] = None,
               masks: bool = False, tile: Optional[int] = None, tile_overlap: int = 0
               ) -> vision_pb2.DetectObjectsResponse:
        """The objects in a picture, best first; boxes are pixels of the picture as seen.

        masks: mask_rle of every detection, which json.loads turns into what pycocotools decodes.
        tile: cuts the picture into squares of so many pixels, each looked at by itself;
        neighbours overlap by tile_overlap at least.
        """
        task = "object-detection"
        request = vision_pb2.DetectObjectsRequest(
            model=model or self._model_for(task), image=_image_bytes(image),
            score_threshold=score_threshold, max_detections=max_detections, masks=masks)
        if tile is not None:
            request.tile.size = tile
            request.tile.overlap = tile_overlap
        return self._call(self._vision.DetectObjects, request, task)

    def image_features(self, image: Image, *, strides: Sequence[int] = (),
                       model: Optional[str] = None) -> vision_pb2.ExtractFeaturesResponse:
        """The maps of an image model's stages; strides empty = all of them."""
        task = "image-features"
        request = vision_pb2.ExtractFeaturesRequest(
            model=model or self._model_for(task), image=_image_bytes(image), strides=strides)
        return self._call(self._vision.ExtractFeatures, request, task)

    def generate(self, prompt: Optional[Document] = None, *, document: Optional[str] = None,
                 model: Optional[str] = None, truncate: bool = False, **options: Any
                 ) -> Iterator[text_pb2.GenerateResponse]:
        """The pieces of text as they are generated; the last has usage and timing.

        prompt may be left out after a document (the handle of open_document). options: the
        fields of GenerateRequest: max_tokens, temperature, top_p, top_k, repetition_penalty,
        seed, stop (a list), n, num_beams, length_penalty, no_repeat_ngram_size, min_new_tokens,
        early_stopping, logprobs, echo, collect. Closing the iterator cancels the call.
        """
        task = "text-generation"
        if prompt is None and document is None:
            raise ValueError("give a prompt, a document or both")
        request = text_pb2.GenerateRequest(truncate=truncate, **options)
        if document is not None:
            request.document = document
            request.model = model or ""
        else:
            request.model = model or self._model_for(task)
        if isinstance(prompt, str):
            request.text = prompt
        elif prompt is not None:
            request.token_ids.extend(prompt)
        return self._stream(self._text.Generate, request, task)

    def open_document(self, parts: Union[str, Iterable[Document]], *,
                      model: Optional[str] = None, lease_seconds: float = 0.0
                      ) -> text_pb2.Document:
        """Reads a text, or an iterable of its parts, once; `handle` of the answer then serves
        many calls of generate until it is closed or unused for lease_seconds (0 = the server's
        default). Not repeated: parts are given once.
        """
        name = model or self._model_for("text-generation")
        if isinstance(parts, str):
            text = parts
            parts = (text[i:i + _PART_CHARACTERS] for i in range(0, len(text), _PART_CHARACTERS))

        def requests() -> Iterator[text_pb2.OpenDocumentRequest]:
            yield text_pb2.OpenDocumentRequest(model=name, lease_seconds=lease_seconds)
            for part in parts:
                if isinstance(part, str):
                    yield text_pb2.OpenDocumentRequest(text=part)
                else:
                    yield text_pb2.OpenDocumentRequest(token_ids=part)

        try:
            return self._text.OpenDocument(requests(), timeout=self._timeout,
                                           metadata=self._metadata)
        except grpc.RpcError as error:
            raise LongviewError(error.code(), error.details()) from error

    def close_document(self, handle: str) -> text_pb2.Document:
        """Frees a document; the answer describes it as it was."""
        return self._repeat(self._text.CloseDocument, text_pb2.CloseDocumentRequest(handle=handle))

    def models(self) -> List[models_pb2.Model]:
        """The models of the server, loaded or not."""
        request = models_pb2.ListModelsRequest()
        return list(self._repeat(self._models.ListModels, request).models)

    def estimate(self, document: Optional[Document] = None, *, num_tokens: Optional[int] = None,
                 width: int = 0, height: int = 0, model: Optional[str] = None,
                 max_tokens: int = 0, n: int = 0) -> models_pb2.EstimateResponse:
        """The cost of a request; nothing runs.

        Give a document, a length in tokens, or width and height of a picture in pixels.

        max_tokens and n: of generators, 0 = the model's.
        """
        sized = bool(width or height)
        if (document is not None) + (num_tokens is not None) + sized != 1:
            raise ValueError("give one of document, num_tokens, and width with height")
        request = models_pb2.EstimateRequest(model=model or self._model_for(""), width=width,
                                             height=height, max_tokens=max_tokens, n=n)
        if num_tokens is not None:
            request.num_tokens = num_tokens
        elif isinstance(document, str):
            request.text = document
        elif document is not None:
            request.token_ids.extend(document)
        return self._call(self._models.Estimate, request, "")

    def _fill(self, request: Any, document: Document, model: Optional[str], task: str,
              truncate: bool, return_logits: bool, global_positions: Sequence[int]) -> None:
        """The fields that all text requests share."""
        request.model = model or self._model_for(task)
        request.truncate = truncate
        request.return_logits = return_logits
        request.global_positions.extend(global_positions)
        if isinstance(document, str):
            request.text = document
        else:
            request.token_ids.extend(document)

    def _model_for(self, task: str) -> str:
        """The only loaded (else: loading) model with the task (any, if empty); asked for once."""
        with self._lock:
            if task in self._only_model:
                return self._only_model[task]
        models = self.models()
        names = [model.name for model in models
                 if model.state == "READY" and (not task or task in (model.task, *model.tasks))]
        # While a model loads, the server refuses calls to it with a delay, and they are repeated.
        names = names or [model.name for model in models if model.state == "LOADING"]
        if len(names) != 1:
            raise ValueError(f"model is needed: the loaded models for {task or 'this'} are "
                             f"{', '.join(names) or 'none'}")
        with self._lock:
            self._only_model[task] = names[0]
        return names[0]

    def _call(self, method: Callable[..., Any], request: Any, task: str) -> Any:
        try:
            return self._repeat(method, request)
        except LongviewError as error:
            if error.code == grpc.StatusCode.NOT_FOUND:  # Unloaded since: ask again next time.
                with self._lock:
                    self._only_model.pop(task, None)
            raise

    def _stream(self, method: Callable[..., Any], request: Any, task: str) -> Iterator[Any]:
        # Only a call that has said nothing yet is repeated: its first answer is awaited there.
        def begin(request: Any, **options: Any) -> Any:
            call = method(request, **options)
            return call, next(call, None)

        call, message = self._call(begin, request, task)
        try:
            while message is not None:
                yield message
                message = next(call, None)
        except grpc.RpcError as error:
            raise LongviewError(error.code(), error.details()) from error
        finally:
            call.cancel()

    def _repeat(self, method: Callable[..., Any], request: Any) -> Any:
        deadline = time.monotonic() + self._timeout if self._timeout is not None else None
        attempts = 0
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-6)
            try:
                return method(request, timeout=left, metadata=self._metadata)
            except grpc.RpcError as error:
                attempts += 1
                left = float("inf") if deadline is None else deadline - time.monotonic()
                delay = next_delay(self._retry, error, attempts, random.random(), left)
                if delay is None:
                    raise LongviewError(error.code(), error.details()) from error
            self._sleep(delay)
