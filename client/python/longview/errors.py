"""The error of every call."""

from __future__ import annotations

import grpc


class LongviewError(Exception):
    """A call that failed. `code` is the grpc.StatusCode, `details` a sentence, the server's where it
    answered."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details


def error_of(error: grpc.RpcError) -> LongviewError:
    """The library's error as the package's."""
    return LongviewError(error.code(), error.details() or "")


def closed_error() -> LongviewError:
    return LongviewError(grpc.StatusCode.CANCELLED, "the client is closed")
