"""The error of every call."""

from __future__ import annotations

from typing import Optional

import grpc

from longview.retry import retry_delay


class LongviewError(Exception):
    """A call that failed. `code` is the grpc.StatusCode, `details` a sentence, the server's where it
    answered. `retry_seconds`: the wait that a server asked for which refused the call before doing
    any work; None otherwise."""

    def __init__(self, code: grpc.StatusCode, details: str,
                 retry_seconds: Optional[float] = None) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details
        self.retry_seconds = retry_seconds


def error_of(error: grpc.RpcError) -> LongviewError:
    """The library's error as the package's."""
    return LongviewError(error.code(), error.details() or "", retry_delay(error))


def closed_error() -> LongviewError:
    return LongviewError(grpc.StatusCode.CANCELLED, "the client is closed")
