"""Which failed calls are repeated, and when.

A call is repeated only if the server refused it before doing any work and said when to come
back: UNAVAILABLE (loading, shutting down) or RESOURCE_EXHAUSTED (queue full) with a
google.rpc.RetryInfo. Everything else reaches the caller at once.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

import grpc
from google.rpc import error_details_pb2, status_pb2

_DETAILS = "grpc-status-details-bin"
_SAFE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


@dataclasses.dataclass(frozen=True)
class RetryPolicy:
    """max_attempts counts all calls, 1 = never repeat; delays are seconds."""

    max_attempts: int = 5
    backoff_growth: float = 1.5
    max_delay: float = 10.0
    jitter: float = 0.2


def retry_delay(error: grpc.RpcError) -> Optional[float]:
    """The delay in seconds that the server asks for; None if this is no safe refusal."""
    if error.code() not in _SAFE:
        return None
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS:
            continue
        details = status_pb2.Status.FromString(value).details
        info = error_details_pb2.RetryInfo()
        for detail in details:
            if detail.Unpack(info):
                return max(0.0, info.retry_delay.seconds + info.retry_delay.nanos * 1e-9)
    return None


def next_delay(policy: RetryPolicy, error: grpc.RpcError, attempts: int, random: float,
               seconds_left: float) -> Optional[float]:
    """Seconds to wait before the next attempt, None to give up.

    attempts: failed calls so far, at least 1. random: uniform in [0, 1). seconds_left: until the
    caller's deadline; a wait that would reach it is not begun.
    """
    asked = retry_delay(error)
    if asked is None or attempts >= policy.max_attempts:
        return None
    grown = asked * policy.backoff_growth ** (attempts - 1)
    # Never earlier than the server asked for.
    delay = max(asked, min(grown, policy.max_delay)) * (1 + policy.jitter * random)
    return delay if delay < seconds_left else None
