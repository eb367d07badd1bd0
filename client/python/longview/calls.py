"""The calls of the server: their parameters, and the requests that these become. Client and
AsyncClient have a method for each function here, with the same parameters.

Every call that takes `model` works without it where exactly one loaded model has the task.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Generic, List, Optional, Sequence, TypeVar, Union

from longview.v1 import models_pb2, text_pb2, types_pb2, vision_pb2

# A document: text, or token ids with the special tokens that the model expects.
Document = Union[str, Sequence[int]]

# A picture: the bytes of a JPEG, PNG or WebP file, or its path.
Image = Union[bytes, str, "os.PathLike[str]"]

Answer = TypeVar("Answer")


@dataclasses.dataclass
class Call(Generic[Answer]):
    """A request, to be sent by `method` of `service`. task: chooses the model where the request
    names none ("" = any task); None: the request is sent as it is."""

    service: str
    method: str
    request: Any
    task: Optional[str] = None


class Stream(Call[Answer]):
    """A call with many answers."""


def classify(document: Document, *, model: Optional[str] = None, top_k: int = 0,
             pair: Optional[Document] = None, truncate: Optional[bool] = None,
             return_logits: bool = False, global_positions: Sequence[int] = ()) -> Call[types_pb2.ClassifyResponse]:
    """The classes, best first; top_k 0 = all. pair: the second text of a pair task."""
    request = text_pb2.ClassifyRequest(top_k=top_k)
    if isinstance(pair, str):
        request.text_pair = pair
    elif pair is not None:
        request.token_ids_pair.extend(pair)
    _fill(request, document, model, truncate, return_logits, global_positions)
    return Call("Text", "Classify", request, "text-classification")


def classify_tokens(document: Document, *, model: Optional[str] = None,
                    aggregation: str = "simple", truncate: Optional[bool] = None,
                    return_logits: bool = False, global_positions: Sequence[int] = ()
                    ) -> Call[text_pb2.ClassifyTokensResponse]:
    """The entities; aggregation is none, simple, first, average or max."""
    request = text_pb2.ClassifyTokensRequest(aggregation=aggregation)
    _fill(request, document, model, truncate, return_logits, global_positions)
    return Call("Text", "ClassifyTokens", request, "token-classification")


def answer(question: str, document: Document, *, model: Optional[str] = None, top_k: int = 1,
           max_answer_tokens: int = 0, truncate: Optional[bool] = None, return_logits: bool = False,
           global_positions: Sequence[int] = ()) -> Call[text_pb2.AnswerQuestionResponse]:
    """The best spans of the document; max_answer_tokens 0 = the server's default."""
    request = text_pb2.AnswerQuestionRequest(question=question, top_k=top_k,
                                             max_answer_tokens=max_answer_tokens)
    _fill(request, document, model, truncate, return_logits, global_positions)
    return Call("Text", "AnswerQuestion", request, "question-answering")


def fill_mask(document: Document, *, model: Optional[str] = None, top_k: int = 5,
              truncate: Optional[bool] = None, return_logits: bool = False,
              global_positions: Sequence[int] = ()) -> Call[text_pb2.FillMaskResponse]:
    """The most likely tokens for every mask of the document."""
    request = text_pb2.FillMaskRequest(top_k=top_k)
    _fill(request, document, model, truncate, return_logits, global_positions)
    return Call("Text", "FillMask", request, "fill-mask")


def embed(document: Document, *, model: Optional[str] = None, pooling: str = "",
          normalize: Optional[bool] = None, truncate: Optional[bool] = None,
          global_positions: Sequence[int] = (), chunk_tokens: Optional[int] = None,
          chunk_overlap: int = 0) -> Call[text_pb2.EmbedResponse]:
    """The document's vector; pooling is cls, mean or pooler, empty = the model's. chunk_tokens: a
    vector for each so many tokens of a text of any length, one behind another, with `chunks`."""
    request = text_pb2.EmbedRequest(pooling=pooling, normalize=normalize, chunk_tokens=chunk_tokens,
                                    chunk_overlap=chunk_overlap)
    _fill(request, document, model, truncate, False, global_positions)
    return Call("Text", "Embed", request, "embedding")


def rerank(query: str, documents: Sequence[str], *, model: Optional[str] = None, top_n: int = 0,
           truncate: Optional[bool] = None, raw_scores: bool = False, return_documents: bool = False
           ) -> Call[text_pb2.RerankResponse]:
    """How well each document answers the query, best first; top_n 0 = all."""
    request = text_pb2.RerankRequest(
        model=model or "", query=query, documents=documents, top_n=top_n, truncate=truncate,
        raw_scores=raw_scores, return_documents=return_documents)
    return Call("Text", "Rerank", request, "rerank")


def classify_image(image: Image, *, model: Optional[str] = None, top_k: int = 0,
                   return_logits: bool = False) -> Call[types_pb2.ClassifyResponse]:
    """The classes of a picture (JPEG, PNG or WebP), best first; top_k 0 = all."""
    request = vision_pb2.ClassifyImageRequest(
        model=model or "", image=_image_bytes(image), top_k=top_k, return_logits=return_logits)
    return Call("Vision", "ClassifyImage", request, "image-classification")


def detect(image: Image, *, model: Optional[str] = None, score_threshold: Optional[float] = None,
           max_detections: Optional[int] = None, masks: bool = False, tile: Optional[int] = None,
           tile_overlap: int = 0) -> Call[vision_pb2.DetectObjectsResponse]:
    """The objects in a picture, best first; boxes are pixels of the picture as seen.

    masks: mask_rle of every detection, which json.loads turns into what pycocotools decodes.
    tile: cuts the picture into squares of so many pixels, each looked at by itself; neighbours
    overlap by tile_overlap at least.
    """
    request = vision_pb2.DetectObjectsRequest(
        model=model or "", image=_image_bytes(image), score_threshold=score_threshold,
        max_detections=max_detections, masks=masks)
    if tile is not None:
        request.tile.size = tile
        request.tile.overlap = tile_overlap
    return Call("Vision", "DetectObjects", request, "object-detection")


def image_features(image: Image, *, strides: Sequence[int] = (), model: Optional[str] = None
                   ) -> Call[vision_pb2.ExtractFeaturesResponse]:
    """The maps of an image model's stages; strides empty = all of them."""
    request = vision_pb2.ExtractFeaturesRequest(model=model or "", image=_image_bytes(image),
                                                strides=strides)
    return Call("Vision", "ExtractFeatures", request, "image-features")


def generate(prompt: Optional[Document] = None, *, document: Optional[str] = None,
             model: Optional[str] = None, truncate: Optional[bool] = None, **options: Any
             ) -> Stream[text_pb2.GenerateResponse]:
    """The pieces of text as they are generated; the last has usage and timing.

    prompt may be left out after a document (the handle of open_document). options: the fields of
    GenerateRequest: max_tokens, temperature, top_p, top_k, repetition_penalty, seed, stop (a
    list), n, num_beams, length_penalty, no_repeat_ngram_size, min_new_tokens, early_stopping,
    logprobs, echo, collect. Closing the iterator cancels the call.
    """
    if prompt is None and document is None:
        raise ValueError("give a prompt, a document or both")
    request = text_pb2.GenerateRequest(model=model or "", truncate=truncate, **options)
    if document is not None:
        request.document = document
    if prompt is not None:
        _set_document(request, prompt)
    return Stream("Text", "Generate", request, None if document is not None else "text-generation")


def close_document(handle: str) -> Call[text_pb2.Document]:
    """Frees a document; the answer describes it as it was."""
    return Call("Text", "CloseDocument", text_pb2.CloseDocumentRequest(handle=handle))


def estimate(document: Optional[Document] = None, *, num_tokens: Optional[int] = None,
             width: int = 0, height: int = 0, model: Optional[str] = None, max_tokens: int = 0,
             n: int = 0) -> Call[models_pb2.EstimateResponse]:
    """The cost of a request; nothing runs.

    Give a document, a length in tokens, or width and height of a picture in pixels.

    max_tokens and n: of generators, 0 = the model's.
    """
    sized = bool(width or height)
    if (document is not None) + (num_tokens is not None) + sized != 1:
        raise ValueError("give one of document, num_tokens, and width with height")
    request = models_pb2.EstimateRequest(model=model or "", width=width, height=height,
                                         max_tokens=max_tokens, n=n)
    if num_tokens is not None:
        request.num_tokens = num_tokens
    elif document is not None:
        _set_document(request, document)
    return Call("Model", "Estimate", request, "")


def list_models() -> Call[models_pb2.ListModelsResponse]:
    return Call("Model", "ListModels", models_pb2.ListModelsRequest())


def open_request(model: str, lease_seconds: float) -> text_pb2.OpenDocumentRequest:
    """The message of OpenDocument before its parts."""
    return text_pb2.OpenDocumentRequest(model=model, lease_seconds=lease_seconds)


def part_request(part: Document) -> text_pb2.OpenDocumentRequest:
    if isinstance(part, str):
        return text_pb2.OpenDocumentRequest(text=part)
    return text_pb2.OpenDocumentRequest(token_ids=part)


def parts_of(text: str, characters: int = 64 << 10) -> List[str]:
    """The text in parts of at most so many characters."""
    return [text[i:i + characters] for i in range(0, len(text), characters)]


def _image_bytes(image: Image) -> bytes:
    if isinstance(image, bytes):
        return image
    with open(image, "rb") as file:
        return file.read()


def _set_document(request: Any, document: Document) -> None:
    if isinstance(document, str):
        request.text = document
    else:
        request.token_ids.extend(document)


def _fill(request: Any, document: Document, model: Optional[str],
          truncate: Optional[bool], return_logits: bool, global_positions: Sequence[int]) -> None:
    """The fields that all text requests share."""
    request.model = model or ""
    if truncate is not None:
        request.truncate = truncate
    request.return_logits = return_logits
    request.global_positions.extend(global_positions)
    _set_document(request, document)
