"""One worker: its chunks from rows to parts."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import pathlib
from typing import Any, Deque, Dict, Iterable, Iterator, List, Optional, Protocol, Tuple

import pyarrow as pa

from longview_bulk import parts, rows
from longview_bulk.ask import ask
from longview_bulk.fleet import Fleet
from longview_bulk.plan import Chunk, Plan, check_unchanged
from longview_bulk.settings import Question
from longview_bulk.tasks import OUTCOME, TASKS, output_schema

# Chunks at a time: one fills the servers while the last rows of the other are under way.
_CHUNKS = 2
# Batches of a chunk that may be under way. All three bound the rows in memory.
_BATCHES = 4


class Report(Protocol):
    """Where a worker tells what it has done."""

    def begun(self, rows: int) -> None:
        """So many rows more (or fewer) are done in chunks that are not whole yet."""

    def finished(self, summary: parts.Summary) -> None:
        """A part is there; its rows were told of by `begun`."""


@dataclasses.dataclass(frozen=True)
class Work:
    """What to do with a chunk, the same in each worker."""

    question: Question
    output: pathlib.Path
    plan: Plan
    keys: pa.Schema
    retry_errors: bool

    def left(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Those that have no part yet, or one with errors that are to be asked again."""
        for chunk in chunks:
            found = parts.summary(self.output, chunk)
            if found is None or (self.retry_errors and found.errors):
                yield chunk


async def run_chunks(work: Work, fleet: Fleet, chunks: Iterator[Chunk], report: Report) -> None:
    """Returns when all are written. RunError, OSError: those that were begun leave nothing behind."""
    async def lane() -> None:
        for chunk in chunks:
            await run_chunk(work, fleet, chunk, report)

    lanes = [asyncio.create_task(lane()) for _ in range(_CHUNKS)]
    try:
        await asyncio.gather(*lanes)
    finally:
        for task in lanes:
            task.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)


async def run_chunk(work: Work, fleet: Fleet, chunk: Chunk, report: Report) -> Optional[parts.Summary]:
    """The chunk's part; None if another worker does the chunk."""
    check_unchanged(work.question.input, work.plan.by_name[chunk.file])
    parts.remove_leftovers(work.output, chunk)
    again = work.retry_errors and parts.summary(work.output, chunk) is not None
    previous = parts.Previous(work.output, chunk) if again else None
    writer = parts.Writer(work.output, chunk, output_schema(TASKS[work.question.task], work.keys))
    told = 0

    async def one(value: rows.Value, before: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        nonlocal told
        done = before if before and before["error_code"] is None \
            else (await ask(fleet, work.question, value)).columns
        told += 1
        report.begun(1)
        return done

    pending: Deque[Tuple[rows.Batch, List[asyncio.Task[Dict[str, Any]]]]] = collections.deque()
    try:
        for batch in rows.read(work.question, chunk, work.keys):
            befores = previous.take(len(batch.values)) if previous else [None] * len(batch.values)
            pending.append((batch, [asyncio.create_task(one(value, before))
                                    for value, before in zip(batch.values, befores)]))
            if len(pending) >= _BATCHES:
                await _write(work, writer, chunk, pending)
        while pending:
            await _write(work, writer, chunk, pending)
        found = await asyncio.to_thread(writer.commit)
    except BaseException as error:
        tasks = [task for _, batch_tasks in pending for task in batch_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        report.begun(-told)
        writer.abandon()
        if isinstance(error, parts.Taken):
            return None
        raise
    report.finished(found)
    return found


async def _write(work: Work, writer: parts.Writer, chunk: Chunk, pending: Deque[Any]) -> None:
    batch, tasks = pending[0]
    answers = await asyncio.gather(*tasks)
    pending.popleft()
    count = len(answers)
    columns: Dict[str, Any] = {"file": pa.array([chunk.file] * count, pa.string()),
                               "row": pa.array(range(batch.begin, batch.begin + count), pa.int64())}
    columns.update((name, batch.keys.column(name)) for name in work.keys.names)
    columns.update((name, pa.array([answer.get(name) for answer in answers], kind))
                   for name, kind in [*TASKS[work.question.task].columns, *OUTCOME])
    writer.write(pa.table(columns, schema=output_schema(TASKS[work.question.task], work.keys)))
