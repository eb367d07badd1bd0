"""The tasks: the client's method for each, its options, and the columns that its answers become."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Tuple

import pyarrow as pa

_LABEL = [("label", pa.string()), ("score", pa.float32()), ("labels", pa.list_(pa.string())),
          ("scores", pa.list_(pa.float32()))]
_BOX = pa.struct([("label", pa.string()), ("score", pa.float32()), ("x0", pa.float32()), ("y0", pa.float32()),
                  ("x1", pa.float32()), ("y1", pa.float32())])
_ENTITY = pa.struct([("label", pa.string()), ("score", pa.float32()), ("text", pa.string()),
                     ("start", pa.int32()), ("end", pa.int32())])
_TRUNCATED = ("truncated_tokens", pa.int32())


@dataclasses.dataclass(frozen=True)
class Task:
    method: str  # One of longview.AsyncClient.
    pictures: bool
    options: Tuple[str, ...]  # Names of the method's arguments that have flags.
    columns: List[Tuple[str, pa.DataType]]
    values: Callable[[Any], Dict[str, Any]]  # From the answer; of a stream, from the list of its pieces.
    defaults: Tuple[Tuple[str, Any], ...] = ()
    streams: bool = False


def _labels(answer: Any) -> Dict[str, Any]:
    best = answer.labels[0] if answer.labels else None
    return {"label": best.name if best else None, "score": best.score if best else None,
            "labels": [label.name for label in answer.labels], "scores": [label.score for label in answer.labels],
            "truncated_tokens": answer.usage.truncated_tokens}


def _fields(message: Any, kind: pa.StructType) -> Dict[str, Any]:
    return {kind.field(i).name: getattr(message, kind.field(i).name) for i in range(kind.num_fields)}


def _entities(answer: Any) -> Dict[str, Any]:
    return {"entities": [_fields(entity, _ENTITY) for entity in answer.entities],
            "truncated_tokens": answer.usage.truncated_tokens}


def _boxes(answer: Any) -> Dict[str, Any]:
    return {"detections": [_fields(found, _BOX) for found in answer.detections]}


def _vector(answer: Any) -> Dict[str, Any]:
    return {"embedding": list(answer.embedding), "truncated_tokens": answer.usage.truncated_tokens}


def _text(pieces: Any) -> Dict[str, Any]:
    last = pieces[-1]
    return {"text": "".join(piece.text for piece in pieces), "finish_reason": last.finish_reason,
            "output_tokens": last.usage.output_tokens, "truncated_tokens": last.usage.truncated_tokens}


TASKS: Dict[str, Task] = {
    "classify": Task("classify", False, ("top_k", "truncate"), [*_LABEL, _TRUNCATED], _labels, (("top_k", 1),)),
    "classify-tokens": Task("classify_tokens", False, ("truncate",),
                            [("entities", pa.list_(_ENTITY)), _TRUNCATED], _entities),
    "embed": Task("embed", False, ("truncate",), [("embedding", pa.list_(pa.float32())), _TRUNCATED], _vector),
    "generate": Task("generate", False, ("max_tokens", "temperature", "seed", "truncate"),
                     [("text", pa.string()), ("finish_reason", pa.string()), ("output_tokens", pa.int32()),
                      _TRUNCATED], _text, streams=True),
    "classify-image": Task("classify_image", True, ("top_k",), _LABEL, _labels, (("top_k", 1),)),
    "detect": Task("detect", True, ("score_threshold",), [("detections", pa.list_(_BOX))], _boxes),
}

# What every output row has besides its keys and its answer.
PLACE = [("file", pa.string()), ("row", pa.int64())]
OUTCOME = [("error_code", pa.string()), ("error_message", pa.string()), ("model", pa.string()),
           ("model_version", pa.string())]


def output_schema(task: Task, keys: pa.Schema) -> pa.Schema:
    """Of every part: place, keys with their types of the input, answer, outcome."""
    return pa.schema([*(pa.field(*column) for column in PLACE), *keys,
                      *(pa.field(*column) for column in [*task.columns, *OUTCOME])])
