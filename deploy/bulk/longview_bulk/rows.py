"""The rows of a chunk, read in batches."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any, Iterator, List, Tuple, Union

import pyarrow as pa
import pyarrow.parquet as pq

from longview_bulk.plan import Chunk, path_of
from longview_bulk.settings import Question, UsageError

BATCH = 256


@dataclasses.dataclass(frozen=True)
class BadRow:
    """A row that cannot be asked about, and why."""

    message: str


# A text, token ids, or the path of a picture.
Value = Union[str, List[int], pathlib.Path, BadRow]


@dataclasses.dataclass(frozen=True)
class Batch:
    begin: int  # Row of the file.
    values: List[Value]
    keys: pa.Table  # The key columns of these rows.


def key_schema(question: Question, names: List[str]) -> pa.Schema:
    """Types of the key columns: those of the first Parquet file, which all must share; JSONL has strings."""
    schema = None
    for name in names:
        if name.endswith(".parquet"):
            whole = pq.read_schema(path_of(question.input, name))
            flags = (("key-columns", question.key_columns), (_flag(question), (question.column,)))
            for flag, columns in flags:
                for column in columns:
                    if column not in whole.names:
                        raise UsageError(f"--{flag}: {name} has no column {column!r} but {', '.join(whole.names)}")
            found = pa.schema([whole.field(column).with_metadata(None) for column in question.key_columns])
        else:
            found = pa.schema([(column, pa.string()) for column in question.key_columns])
        if schema is not None and not found.equals(schema):
            raise UsageError(f"--key-columns: {name} has other types than the files before it: {found} and {schema}")
        schema = found
    assert schema is not None
    return schema


def _flag(question: Question) -> str:
    return "text-column" if question.text_column else "ids-column" if question.ids_column else "image-column"


def read(question: Question, chunk: Chunk, keys: pa.Schema) -> Iterator[Batch]:
    """All rows of the chunk, in order, in batches of at most BATCH rows."""
    path = path_of(question.input, chunk.file)
    batches = _parquet(path, question, chunk) if path.suffix == ".parquet" else _jsonl(path, question, chunk, keys)
    begin = chunk.begin
    for raw, table in batches:
        values = [value if isinstance(value, BadRow) else _value(question, path, value) for value in raw]
        yield Batch(begin, values, table.cast(keys))
        begin += len(values)


def _value(question: Question, path: pathlib.Path, value: Any) -> Value:
    column = question.column
    if question.ids_column is not None:
        whole = isinstance(value, list) and all(type(item) is int and -2**31 <= item < 2**31 for item in value)
        return value if whole else BadRow(f"{column}: {str(value)[:64]!r} is no list of token ids")
    if not isinstance(value, str):
        return BadRow(f"{column}: {str(value)[:64]!r} is no string")
    return path.parent / value if question.image_column is not None else value


def _parquet(path: pathlib.Path, question: Question, chunk: Chunk) -> Iterator[Tuple[List[Any], pa.Table]]:
    columns = list(dict.fromkeys([question.column, *question.key_columns]))
    with pq.ParquetFile(path, buffer_size=1 << 20) as file:
        at, groups, begins = 0, [], []
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if at < chunk.end and at + rows > chunk.begin:
                groups.append(group)
                begins.append(at)
            at += rows
        at = begins[0]
        for batch in file.iter_batches(BATCH, row_groups=groups, columns=columns):
            begin, end = max(chunk.begin - at, 0), min(chunk.end - at, batch.num_rows)
            at += batch.num_rows
            if begin < end:
                part = pa.Table.from_batches([batch.slice(begin, end - begin)])
                yield part.column(question.column).to_pylist(), part.select(list(question.key_columns))
            if at >= chunk.end:
                return


def _jsonl(path: pathlib.Path, question: Question, chunk: Chunk, keys: pa.Schema
           ) -> Iterator[Tuple[List[Any], pa.Table]]:
    with open(path, "rb") as file:
        file.seek(chunk.offset)
        row = chunk.begin
        while row < chunk.end:
            values: List[Any] = []
            columns: List[List[Any]] = [[] for _ in question.key_columns]
            while row < chunk.end and len(values) < BATCH:
                line = file.readline()
                if not line:
                    raise OSError(f"{path} ended before row {chunk.end}")
                if not line.strip():
                    continue
                found = _object(line)
                values.append(found if isinstance(found, BadRow) else found.get(question.column))
                for column, name in zip(columns, question.key_columns):
                    column.append(None if isinstance(found, BadRow) else _string(found.get(name)))
                row += 1
            yield values, pa.table([pa.array(column, pa.string()) for column in columns], schema=keys)


def _object(line: bytes) -> Any:
    try:
        found = json.loads(line)
    except ValueError as error:
        return BadRow(f"the line is not JSON: {error}"[:200])
    return found if isinstance(found, dict) else BadRow("the line is not a JSON object")


def _string(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def picture(path: pathlib.Path) -> Union[bytes, BadRow]:
    try:
        return path.read_bytes()
    except OSError as error:
        return BadRow(f"{os.fspath(path)}: {error.strerror}")
