"""The input as chunks, and the file in the output folder that says of which input and question it is."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import secrets
from typing import Any, Dict, Iterator, List, Optional

import pyarrow.parquet as pq

from longview_bulk.settings import Question, RunError, UsageError

# Readers of folders of Parquet leave out names that begin with an underscore.
PLAN = "_plan.json"
SUFFIXES = (".parquet", ".jsonl")
# A chunk reads its row group from the start: no more chunks than this for one row group.
_CUTS = 32


@dataclasses.dataclass(frozen=True)
class File:
    name: str  # Relative to the input folder.
    bytes: int
    mtime_ns: int
    sha256: str
    rows: int
    step: int  # Rows of a chunk.
    offsets: List[int]  # JSONL: the byte at which each chunk begins.


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Rows [begin, end) of a file. number: its place among all; id: of file, contents, range and question."""

    number: int
    id: str
    file: str
    begin: int
    end: int
    offset: int

    @property
    def rows(self) -> int:
        return self.end - self.begin


@dataclasses.dataclass(frozen=True)
class Plan:
    identity: Dict[str, Any]
    files: List[File]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @functools.cached_property
    def by_name(self) -> Dict[str, File]:
        return {file.name: file for file in self.files}

    def chunks(self) -> Iterator[Chunk]:
        number = 0
        question = json.dumps(self.identity, sort_keys=True)
        for file in self.files:
            for index, begin in enumerate(range(0, file.rows, file.step)):
                end = min(begin + file.step, file.rows)
                text = json.dumps([file.name, file.sha256, begin, end, question])
                yield Chunk(number, hashlib.sha256(text.encode()).hexdigest()[:16], file.name, begin, end,
                            file.offsets[index] if file.offsets else 0)
                number += 1


def input_files(path: str) -> Dict[str, pathlib.Path]:
    """Files by their names relative to the folder, sorted; a single file by its own name."""
    root = pathlib.Path(path)
    if root.is_file():
        if root.suffix not in SUFFIXES:
            raise UsageError(f"--input: {path} does not end in {' or '.join(SUFFIXES)}")
        return {root.name: root}
    found = {file.relative_to(root).as_posix(): file for file in sorted(root.rglob("*"))
             if file.suffix in SUFFIXES and not file.name.startswith((".", "_"))}
    if not found:
        raise UsageError(f"--input: {path} has no file that ends in {' or '.join(SUFFIXES)}")
    return found


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _scan(name: str, path: pathlib.Path, chunk_rows: int) -> File:
    status, digest = os.stat(path), _sha256(path)
    if path.suffix == ".parquet":
        try:
            metadata = pq.read_metadata(path)
        except Exception as error:
            raise UsageError(f"--input: {path} is no Parquet file: {error}") from error
        largest = max((metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)), default=0)
        step = max(chunk_rows, -(-largest // _CUTS))
        return File(name, status.st_size, status.st_mtime_ns, digest, metadata.num_rows, step, [])
    rows, at, offsets = 0, 0, []
    with open(path, "rb") as file:
        for line in file:
            if line.strip():
                if rows % chunk_rows == 0:
                    offsets.append(at)
                rows += 1
            at += len(line)
    return File(name, status.st_size, status.st_mtime_ns, digest, rows, chunk_rows, offsets)


def _stored(output: pathlib.Path) -> Optional[Plan]:
    try:
        found = json.loads((output / PLAN).read_text())
        return Plan(found["identity"], [File(**file) for file in found["files"]])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"--output: {output / PLAN} is not one of this program's: {error}") from error


def make_plan(question: Question, output: pathlib.Path) -> Plan:
    """The plan of the output folder, made if there is none; UsageError if it is of something else.

    Files whose size and time are as they were are not read again. Workers that begin together
    all make it: it is the same.
    """
    old = _stored(output)
    identity = json.loads(json.dumps(question.identity()))
    elsewhere = f"what is in {output} was made otherwise; give another --output"
    if old is not None:
        for flag in sorted({*old.identity, *identity}):
            before, given = old.identity.get(flag), identity.get(flag)
            if before != given:
                raise UsageError(f"--{flag}: {given!r} is not {before!r}: {elsewhere}")
    known = {file.name: file for file in old.files} if old else {}
    files = []
    for name, path in input_files(question.input).items():
        before, status = known.get(name), os.stat(path)
        if before and (before.bytes, before.mtime_ns) == (status.st_size, status.st_mtime_ns):
            files.append(before)
        else:
            files.append(_scan(name, path, question.chunk_rows))
    if old is not None:
        contents = {file.name: file.sha256 for file in files}
        for name in sorted({*known, *contents}):
            before_sha256 = known[name].sha256 if name in known else None
            if contents.get(name) != before_sha256:
                what = "new" if name not in known else "gone" if name not in contents else "changed"
                raise UsageError(f"--input: {name} is {what}: {elsewhere}")
    plan = Plan(identity, files)
    if old != plan:
        output.mkdir(parents=True, exist_ok=True)
        temporary = output / f".{PLAN}.{secrets.token_hex(8)}"
        temporary.write_text(json.dumps(dataclasses.asdict(plan)))
        os.replace(temporary, output / PLAN)
    return plan


def path_of(root: str, name: str) -> pathlib.Path:
    """The file that input_files calls by this name."""
    path = pathlib.Path(root)
    return path if path.is_file() else path / name


def check_unchanged(root: str, file: File) -> None:
    """RunError if the file is not what it was when the plan was made."""
    status = os.stat(path_of(root, file.name))
    if (status.st_size, status.st_mtime_ns) != (file.bytes, file.mtime_ns):
        raise RunError(f"--input: {file.name} was changed during the run")
