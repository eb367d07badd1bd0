"""The chunks as a Ray Data set, mapped by a pool of actors. A killed actor's chunks are done again."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from typing import Any, Dict, Iterable, Optional

from longview_bulk import parts
from longview_bulk.fleet import Fleet
from longview_bulk.plan import Chunk
from longview_bulk.progress import Progress
from longview_bulk.run import Work, run_chunk
from longview_bulk.settings import RunError, Service

# Blocks of a data set; Ray keeps a little about each.
_BLOCKS = 10_000
# Chunks that an actor does at a time, for the reason of run.py.
_CHUNKS = 2


class _Silent:
    def begun(self, rows: int) -> None:
        pass

    def finished(self, summary: parts.Summary) -> None:
        pass


class Actor:
    """Runs chunks on a loop of its own thread; called by Ray from several threads."""

    def __init__(self, work: Work, service: Service) -> None:
        self._work = work
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._fleet: Fleet = asyncio.run_coroutine_threadsafe(self._open(service), self._loop).result()

    async def _open(self, service: Service) -> Fleet:
        return await Fleet(service).__aenter__()

    def __call__(self, batch: Dict[str, Any]) -> Dict[str, Any]:
        """One chunk in, its rows and errors out."""
        chunk = Chunk(**{name: values[0].item() if hasattr(values[0], "item") else values[0]
                         for name, values in batch.items()})
        running = asyncio.run_coroutine_threadsafe(self._do(chunk), self._loop)
        found = running.result()
        return {"id": [chunk.id], "rows": [chunk.rows], "errors": [found.errors if found else 0]}

    async def _do(self, chunk: Chunk) -> Optional[parts.Summary]:
        # A repeated task may find the part there.
        if not list(self._work.left([chunk])):
            return parts.summary(self._work.output, chunk)
        return await run_chunk(self._work, self._fleet, chunk, _Silent())


def run_ray(work: Work, service: Service, chunks: Iterable[Chunk], address: Optional[str], workers: int,
            progress: Progress) -> None:
    """Returns when all chunks are written. RunError.

    address: of a Ray cluster, on whose machines this package is installed and the folders are
    mounted; None starts Ray here.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise RunError(f"--ray: {error}; pip install 'ray[data]'") from error

    items = [dataclasses.asdict(chunk) for chunk in chunks]
    if not items:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Nothing is reported to Ray's makers.
    ray.init(address=address, ignore_reinit_error=True)
    # Actors that die are started again, and their tasks repeated, without end: Ray Data's default.
    ray.data.DataContext.get_current().enable_progress_bars = False
    data = ray.data.from_items(items, override_num_blocks=min(len(items), _BLOCKS)).map_batches(
        Actor, fn_constructor_args=(work, service), batch_size=1,
        compute=ray.data.ActorPoolStrategy(
            size=workers, max_tasks_in_flight_per_actor=2 * _CHUNKS, max_concurrent_calls_per_actor=_CHUNKS,
            enable_true_multi_threading=True),
        num_cpus=0.25)  # A worker mostly waits; the rest of a core is for others.
    try:
        for row in data.iter_rows():
            progress.begun(row["rows"])
            progress.finished(parts.Summary(row["id"], row["rows"], row["errors"], {}))
    except ray.exceptions.RayError as error:
        raise RunError(str(error).strip().splitlines()[-1]) from error
    finally:
        ray.shutdown()
