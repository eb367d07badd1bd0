"""Worker `index` of `of`: the chunks whose number is index modulo of. No coordination is needed."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Dict, Iterator

from longview_bulk import parts
from longview_bulk.fleet import Fleet
from longview_bulk.plan import Chunk
from longview_bulk.run import Report, Work, run_chunks
from longview_bulk.settings import Service

_HEARTBEAT = 0.5  # Seconds between two events of a worker that has a supervisor.


def share(work: Work, index: int, of: int) -> Iterator[Chunk]:
    return (chunk for chunk in work.plan.chunks() if chunk.number % of == index)


class Events:
    """Reports to the supervisor: one JSON object a line on stdout. If that is gone, so is the worker."""

    def __init__(self) -> None:
        self._rows = 0

    def begun(self, rows: int) -> None:
        self._rows += rows

    def finished(self, summary: parts.Summary) -> None:
        self._send({"begun": self._rows, "finished": vars(summary)})

    def beat(self) -> None:
        self._send({"begun": self._rows})

    def _send(self, event: Dict[str, Any]) -> None:
        self._rows = 0
        print(json.dumps(event), flush=True)


async def _beat(events: Events) -> None:
    while True:
        events.beat()
        await asyncio.sleep(_HEARTBEAT)


async def _run(work: Work, service: Service, index: int, of: int, report: Report) -> None:
    async with Fleet(service) as fleet:
        tasks = [asyncio.create_task(run_chunks(work, fleet, work.left(share(work, index, of)), report))]
        if isinstance(report, Events):
            tasks.append(asyncio.create_task(_beat(report)))
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for task in done:
            task.result()


def run_worker(work: Work, service: Service, index: int, of: int, report: Report) -> None:
    """Returns when the worker's chunks are written. RunError, OSError."""
    asyncio.run(_run(work, service, index, of, report))
