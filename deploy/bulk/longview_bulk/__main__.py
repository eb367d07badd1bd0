"""The command: python -m longview_bulk."""

from __future__ import annotations

import collections
import pathlib
import signal
import sys
from typing import Any, Counter, List, Sequence

from longview_bulk import parts
from longview_bulk.arguments import Command, parse_command
from longview_bulk.local import run_local
from longview_bulk.plan import Chunk, make_plan
from longview_bulk.progress import Progress
from longview_bulk.ray_run import run_ray
from longview_bulk.rows import key_schema
from longview_bulk.run import Work
from longview_bulk.settings import RunError, UsageError
from longview_bulk.worker import Events, run_worker, share


def _work(command: Command) -> Work:
    output = pathlib.Path(command.output)
    plan = make_plan(command.question, output)
    return Work(command.question, output, plan, key_schema(command.question, [file.name for file in plan.files]),
                command.retry_errors)


def _account(work: Work, chunks: Sequence[Chunk], progress: Progress) -> int:
    """Says what is in the output folder by its parts' footers; the exit status."""
    rows, errors, left = 0, 0, 0
    versions: Counter[str] = collections.Counter()
    for chunk in chunks:
        found = parts.summary(work.output, chunk)
        left += found is None
        if found:
            rows, errors = rows + found.rows, errors + found.errors
            versions.update(found.versions)
    by = ", ".join(f"{count:,} of version {version}" for version, count in sorted(versions.items()))
    progress.say(f"{rows:,} rows written, {errors:,} with an error; answers: {by or 'none'}")
    parts.tidy(work.output)
    if left:
        raise RunError(f"{left} chunks are not written; run the same command again")
    if errors:
        progress.say("--retry-errors asks about rows with an error again")
    return 3 if errors else 0


def run(command: Command, arguments: List[str]) -> int:
    """The exit status. RunError, OSError."""
    work = _work(command)
    if command.plan:
        print(f"{work.plan.rows:,} rows in {sum(1 for _ in work.plan.chunks()):,} chunks", file=sys.stderr)
        return 0
    if command.events:
        run_worker(work, command.service, command.index, command.of, Events())
        return 0
    chunks = list(share(work, command.index, command.of))
    progress = Progress(sum(chunk.rows for chunk in chunks))
    left: List[Any] = []
    for chunk in chunks:
        found = parts.summary(work.output, chunk)
        if found is None or (work.retry_errors and found.errors):
            left.append(chunk)
        else:
            progress.skip(found.rows, found.errors)
    if progress.done:
        progress.say(f"{progress.done:,} of {progress.total:,} rows were there already")
    if command.ray is not None:
        run_ray(work, command.service, left, command.ray or None, command.workers, progress)
    elif command.of > 1 or command.in_job:
        run_worker(work, command.service, command.index, command.of, progress)
    elif left:
        status = run_local(arguments, command.workers, progress)
        if status not in (0, 3):
            return status
    return _account(work, chunks, progress)


def main(arguments: List[str]) -> int:
    try:
        command = parse_command(arguments)
        if not command.events:  # The supervisor of a worker replaces it, unless it ended it itself.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        return run(command, arguments)
    except UsageError as error:
        print(f"longview_bulk: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # The supervisor is gone.
        return 1
    except (RunError, OSError) as error:
        print(f"longview_bulk: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if "--events" not in arguments:
            print("longview_bulk: stopped; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
