"""The command line."""

from __future__ import annotations

import argparse
import dataclasses
import os
from typing import Any, List, NoReturn, Optional

from longview_bulk.settings import Question, Service, UsageError, parse
from longview_bulk.tasks import OUTCOME, PLACE, TASKS


@dataclasses.dataclass(frozen=True)
class Command:
    question: Question
    service: Service
    output: str
    workers: int
    ray: Optional[str]  # "": start Ray here.
    index: int
    of: int
    in_job: bool
    retry_errors: bool
    plan: bool
    events: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m longview_bulk", allow_abbrev=False, epilog="""Exit status: 0 all rows have an
        answer, 1 the run stopped early (the same command goes on from there), 2 the command line is wrong, 3 all rows
        are written, some with an error. LONGVIEW_API_KEY in the environment is the key. Progress goes to stderr.""")
    add = parser.add_argument
    add("--input", required=True, help="a .parquet or .jsonl file, or a folder of them")
    add("--output", required=True, help="the folder for the answers; on a mounted file system")
    add("--servers", required=True, metavar="HOST:PORT[/HTTP],...", help="gRPC ports, and behind / the port of "
        "/metrics (8080); all addresses of a name are used")
    add("--task", required=True, choices=sorted(TASKS))
    add("--model", required=True)
    add("--text-column", metavar="NAME", help="text (the default: text)")
    add("--ids-column", metavar="NAME", help="token ids instead of text")
    add("--image-column", metavar="NAME", help="paths of pictures, relative to the file that names them "
        "(the default for pictures: image)")
    add("--key-columns", default="", metavar="NAME,...", help="columns to copy; file and row are always written")
    add("--top-k", type=int, help="classify: labels of each row (1)")
    add("--max-tokens", type=int, help="generate: new tokens")
    add("--temperature", type=float, help="generate")
    add("--seed", type=int, help="generate")
    add("--score-threshold", type=float, help="detect")
    add("--truncate", action="store_true", default=None, help="cut texts that are too long; else they are errors")
    add("--chunk-rows", type=int, default=1000, help="rows of an output file, the unit of resuming (1000)")
    add("--workers", type=int, default=1, help="processes, or actors of Ray (1)")
    add("--ray", nargs="?", const="", metavar="ADDRESS", help="by Ray: on the cluster at ADDRESS, else started here")
    add("--index", type=int, default=int(os.environ.get("JOB_COMPLETION_INDEX", "-1")),
        help="of this worker among --of (JOB_COMPLETION_INDEX)")
    add("--of", type=int, default=0, help="workers that share the input and are started by others")
    add("--retry-errors", action="store_true", help="ask about rows with an error again")
    add("--plan", action="store_true", help="only read the input and write _plan.json, for workers to find")
    add("--queued-seconds", type=float, default=2.0, help="predicted work that may wait in a server (2)")
    add("--max-in-flight", type=int, default=256, help="calls to one server (256)")
    add("--timeout", type=float, default=120.0, help="seconds for a call (120)")
    add("--attempts", type=int, default=5, help="calls for a row that broke off (5)")
    add("--patience", type=float, default=300.0, help="seconds that a row may be refused or no server answer (300)")
    add("--tls", action="store_true")
    for name in ("--ca", "--cert", "--key"):
        add(name, metavar="FILE")
    add("--events", action="store_true", help=argparse.SUPPRESS)
    return parser


def _at_least(given: argparse.Namespace, **limits: float) -> None:
    for name, limit in limits.items():
        value = getattr(given, name)
        if value is not None and not value >= limit:
            raise UsageError(f"--{name.replace('_', '-')}: {value} is below {limit}")


def _question(given: argparse.Namespace) -> Question:
    task = TASKS[given.task]
    columns = {"text_column": given.text_column, "ids_column": given.ids_column, "image_column": given.image_column}
    if not any(columns.values()):
        columns["image_column" if task.pictures else "text_column"] = "image" if task.pictures else "text"
    named = [name for name, column in columns.items() if column]
    flags = ", ".join("--" + name.replace("_", "-") for name in named)
    if len(named) != 1 or (named[0] == "image_column") != task.pictures:
        takes = "--image-column" if task.pictures else "--text-column or --ids-column"
        raise UsageError(f"{flags}: {given.task} takes one of {takes}")
    keys = tuple(name for name in given.key_columns.split(",") if name)
    taken = {name for name, _ in [*PLACE, *task.columns, *OUTCOME]}
    for key in keys:
        if key in taken or keys.count(key) > 1:
            raise UsageError(f"--key-columns: {key!r} is the name of another column of the output")
    options = dict(task.defaults)
    for name in ("top_k", "max_tokens", "temperature", "seed", "score_threshold", "truncate"):
        value: Any = getattr(given, name)
        if value is not None and name not in task.options:
            raise UsageError(f"--{name.replace('_', '-')}: {given.task} has no such option")
        if value is not None:
            options[name] = value
    return Question(given.input, given.task, given.model, key_columns=keys, chunk_rows=given.chunk_rows,
                    options=tuple(sorted(options.items())), **columns)


def parse_command(arguments: List[str]) -> Command:
    """UsageError that names flag, value and limit."""
    given = _parser().parse_args(arguments)
    _at_least(given, chunk_rows=1, workers=1, top_k=0, max_tokens=0, max_in_flight=1, attempts=1, timeout=0.001,
              queued_seconds=0.001, temperature=0, seed=0)
    if given.patience < given.timeout:
        raise UsageError(f"--patience: {given.patience:g} is below --timeout {given.timeout:g}")
    in_job = given.of > 0
    if in_job and not 0 <= given.index < given.of:
        raise UsageError(f"--index: {given.index} is not in [0, {given.of}), from --of")
    if given.ray is not None and in_job:
        raise UsageError("--ray: not together with --of")
    servers = tuple(entry for entry in given.servers.split(",") if entry)
    for entry in servers or ("",):
        parse(entry)
    service = Service(servers, given.timeout, given.attempts, given.patience, given.queued_seconds,
                      given.max_in_flight, given.tls, given.ca, given.cert, given.key)
    return Command(_question(given), service, given.output, given.workers, given.ray, max(given.index, 0) * in_job,
                   given.of if in_job else 1, in_job, given.retry_errors, given.plan, given.events)
