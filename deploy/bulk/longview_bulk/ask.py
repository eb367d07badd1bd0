"""One row: one call of the Python client, repeated where that can help."""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib
import time
from typing import Any, Dict, Optional

import grpc

from longview import LongviewError
from longview_bulk.fleet import Fleet
from longview_bulk.rows import BadRow, Value, picture
from longview_bulk.server import Server
from longview_bulk.settings import Question, RunError
from longview_bulk.tasks import TASKS, Task

# Errors of the run, not of a row: all rows would meet them.
_OF_THE_RUN = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED,
               grpc.StatusCode.UNIMPLEMENTED)
# The connection broke or time ran out. Calls change nothing in a server, so that asking again is safe.
_BROKEN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The answer's columns, or an error."""

    values: Dict[str, Any]
    error_code: Optional[str] = None
    error_message: Optional[str] = None

    @property
    def columns(self) -> Dict[str, Any]:
        return {**self.values, "error_code": self.error_code, "error_message": self.error_message}


async def ask(fleet: Fleet, question: Question, value: Value) -> Outcome:
    """RunError if no row can be answered."""
    if isinstance(value, pathlib.Path):
        value = await asyncio.to_thread(picture, value)  # type: ignore[assignment]
    if isinstance(value, BadRow):
        return Outcome({}, "INVALID_ARGUMENT", value.message)
    begun, broken, again = time.monotonic(), 0, False
    while True:
        server = await fleet.take(again)
        try:
            return await _call(fleet, server, question, value)
        except LongviewError as error:
            last = error
        except (TypeError, ValueError) as error:  # The client's own checks.
            return Outcome({}, "INVALID_ARGUMENT", str(error))
        finally:
            fleet.give_back(server)
        again = True
        if last.retry_seconds is not None:
            if time.monotonic() - begun > fleet.service.patience:
                return Outcome({}, last.code.name, last.details)
        elif last.code in _BROKEN:
            broken += 1
            if broken >= fleet.service.attempts:
                return Outcome({}, last.code.name, f"{last.details} ({broken} attempts)")
            await asyncio.sleep(min(0.1 * 2 ** broken, 5.0))
        elif last.code in _OF_THE_RUN:
            raise RunError(f"{server.address}: {last}")
        else:
            return Outcome({}, last.code.name, last.details)


async def _call(fleet: Fleet, server: Server, question: Question, value: Any) -> Outcome:
    task: Task = TASKS[question.task]
    options = dict(question.options)
    try:
        call = getattr(server.client, task.method)(value, model=question.model, **options)
        answer: Any = [piece async for piece in call] if task.streams else await call
    except LongviewError as error:
        # Told before the server is given back, so that no other row is sent there in between.
        if error.retry_seconds is not None:
            fleet.note_refusal(server, error.retry_seconds)
        elif error.code == grpc.StatusCode.DEADLINE_EXCEEDED:
            server.refused = True
        elif error.code in _BROKEN:
            fleet.note_gone(server)
        else:
            fleet.note_answer(server, 0.0, 0)
        raise
    last = answer[-1] if task.streams else answer
    fleet.note_answer(server, last.timing.queue_seconds, last.timing.batch_items)
    return Outcome({**task.values(answer), "model": last.model, "model_version": last.version})
