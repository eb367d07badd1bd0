"""The server that a client connects to, and how: the same for both clients."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, List, Optional, Sequence, Tuple

import grpc

from longview.errors import LongviewError
from longview.v1 import models_pb2, models_pb2_grpc, text_pb2_grpc, vision_pb2_grpc

_MESSAGE_BYTES = 64 << 20

STUBS = {"Text": text_pb2_grpc.TextServiceStub, "Vision": vision_pb2_grpc.VisionServiceStub,
         "Model": models_pb2_grpc.ModelServiceStub}


def _read(path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


@dataclasses.dataclass(frozen=True)
class Connection:
    """The parameters of Client of the same names."""

    server: str
    api_key: Optional[str]
    tls: bool
    ca: Optional[str]
    cert: Optional[str]
    key: Optional[str]

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key: one was given without the other")

    def metadata(self) -> Tuple[Tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.api_key}"),) if self.api_key else ()

    def open(self, insecure: Callable[..., Any], secure: Callable[..., Any]) -> Any:
        """A channel, made by one of the two functions of grpc or grpc.aio."""
        options = [("grpc.max_receive_message_length", _MESSAGE_BYTES),
                   ("grpc.max_send_message_length", _MESSAGE_BYTES)]
        if not self.tls and self.ca is None and self.cert is None:
            return insecure(self.server, options)
        credentials = grpc.ssl_channel_credentials(_read(self.ca), _read(self.key),
                                                   _read(self.cert))
        return secure(self.server, credentials, options)


def only_model(models: Sequence[models_pb2.Model], task: str) -> str:
    """The name of the only loaded (else: loading) model with the task (any, if empty)."""
    names: List[str] = [model.name for model in models if model.state == "READY"
                        and (not task or task in (model.task, *model.tasks))]
    # While a model loads, the server refuses calls to it with a delay, and they are repeated.
    names = names or [model.name for model in models if model.state == "LOADING"]
    if len(names) != 1:
        raise LongviewError(grpc.StatusCode.INVALID_ARGUMENT,
                            f"model is needed: the loaded models for {task or 'this'} are "
                            f"{', '.join(names) or 'none'}")
    return names[0]
