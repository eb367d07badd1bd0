"""One Parquet file a chunk, which is there whole or not at all."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import secrets
from typing import Any, Counter, Dict, Iterator, List, Optional

import pyarrow as pa
import pyarrow.parquet as pq

from longview_bulk.plan import Chunk
from longview_bulk.settings import RunError

_KEY = b"longview_bulk"
# A folder that readers of the output leave out, and that is short to list.
_TEMPORARY = ".temporary"


@dataclasses.dataclass(frozen=True)
class Summary:
    """What the footer of a part says of it."""

    id: str
    rows: int
    errors: int
    versions: Dict[str, int]  # Rows by the version of the model that answered.


class Taken(Exception):
    """Another worker has begun the chunk since and removed this one's temporary."""


def _final(folder: pathlib.Path, chunk: Chunk) -> pathlib.Path:
    return folder / f"part-{chunk.number:06d}-{chunk.id}.parquet"


def remove_leftovers(folder: pathlib.Path, chunk: Chunk) -> None:
    """Removes what dead workers left of the chunk. One that is alive loses its temporary and gives up."""
    for path in (folder / _TEMPORARY).glob(f"{_final(folder, chunk).name}.*"):
        path.unlink(missing_ok=True)


def tidy(folder: pathlib.Path) -> None:
    """After the last part: removes the folder of temporaries, unless another worker still has one."""
    try:
        (folder / _TEMPORARY).rmdir()
    except OSError:
        pass


def summary(folder: pathlib.Path, chunk: Chunk) -> Optional[Summary]:
    """Of the chunk's part; None if there is none. RunError if it is not this chunk's or is damaged."""
    path = _final(folder, chunk)
    if not path.exists():
        return None
    try:
        metadata = pq.read_metadata(path)
        found = Summary(**json.loads(metadata.metadata[_KEY]))
    except Exception as error:
        raise RunError(f"--output: {path} is damaged, remove it to have its rows done again: {error}") from error
    if (found.id, found.rows, metadata.num_rows) != (chunk.id, chunk.rows, chunk.rows):
        raise RunError(f"--output: {path} has {metadata.num_rows} rows of chunk {found.id}, not the {chunk.rows} of "
                       f"{chunk.id}; remove it to have its rows done again")
    return found


class Writer:
    """Writes a part under a temporary name until `commit`."""

    def __init__(self, folder: pathlib.Path, chunk: Chunk, schema: pa.Schema) -> None:
        self._final, self._chunk = _final(folder, chunk), chunk
        (folder / _TEMPORARY).mkdir(exist_ok=True)
        self._temporary = folder / _TEMPORARY / f"{self._final.name}.{secrets.token_hex(8)}"
        self._writer = pq.ParquetWriter(self._temporary, schema)
        self._errors, self._rows = 0, 0
        self._versions: Counter[str] = collections.Counter()

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)
        self._rows += table.num_rows
        self._errors += table.num_rows - table.column("error_code").null_count
        for entry in table.column("model_version").drop_null().value_counts().to_pylist():
            self._versions[entry["values"]] += entry["counts"]

    def commit(self) -> Summary:
        """The part is on the disk under its name when this returns."""
        found = Summary(self._chunk.id, self._rows, self._errors, dict(self._versions))
        assert found.rows == self._chunk.rows, found
        self._writer.add_key_value_metadata({_KEY: json.dumps(dataclasses.asdict(found)).encode()})
        self._writer.close()
        try:
            _sync(self._temporary)
            os.rename(self._temporary, self._final)
        except FileNotFoundError as error:
            raise Taken(self._final.name) from error
        _sync(self._final.parent)
        return found

    def abandon(self) -> None:
        self._writer.close()
        self._temporary.unlink(missing_ok=True)


def _sync(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Previous:
    """The rows of a part that is there, in order."""

    def __init__(self, folder: pathlib.Path, chunk: Chunk) -> None:
        self._rows = self._read(_final(folder, chunk))

    def _read(self, path: pathlib.Path) -> Iterator[Dict[str, Any]]:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(256):
                yield from batch.to_pylist()

    def take(self, count: int) -> List[Dict[str, Any]]:
        return [next(self._rows) for _ in range(count)]
