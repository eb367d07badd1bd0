"""A part is there whole or not at all."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from longview_bulk import parts
from longview_bulk.plan import Chunk
from longview_bulk.settings import RunError
from longview_bulk.tasks import TASKS, output_schema

SCHEMA = output_schema(TASKS["classify"], pa.schema([]))
CHUNK = Chunk(3, "abc", "a.parquet", 10, 14, 0)


def table(rows, code=None, version="1"):
    columns = {name: [None] * rows for name in SCHEMA.names}
    return pa.table({**columns, "error_code": [code] * rows, "model_version": [version] * rows}, schema=SCHEMA)


def written(folder, chunk=CHUNK):
    writer = parts.Writer(folder, chunk, SCHEMA)
    writer.write(table(3))
    writer.write(table(1, "INTERNAL", None))
    return writer


def test_a_part_says_what_it_is(tmp_path):
    writer = written(tmp_path)
    assert parts.summary(tmp_path, CHUNK) is None and not list(tmp_path.glob("part*"))
    found = writer.commit()
    assert found == parts.summary(tmp_path, CHUNK) == parts.Summary("abc", 4, 1, {"1": 3})
    parts.tidy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["part-000003-abc.parquet"]
    assert pq.read_table(tmp_path).num_rows == 4
    assert [row["error_code"] for row in parts.Previous(tmp_path, CHUNK).take(4)] == [None] * 3 + ["INTERNAL"]


def test_what_dead_workers_left_is_removed(tmp_path):
    dead = written(tmp_path)
    other = written(tmp_path, Chunk(4, "def", "a.parquet", 14, 18, 0))
    assert len(list((tmp_path / ".temporary").iterdir())) == 2
    parts.remove_leftovers(tmp_path, CHUNK)
    assert len(list((tmp_path / ".temporary").iterdir())) == 1
    with pytest.raises(parts.Taken):  # One that was slow and not dead writes nothing.
        dead.commit()
    parts.tidy(tmp_path)  # Not while the other is there.
    other.abandon()
    parts.tidy(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_short_part_is_never_committed(tmp_path):
    writer = parts.Writer(tmp_path, CHUNK, SCHEMA)
    writer.write(table(3))
    with pytest.raises(AssertionError):
        writer.commit()
    assert parts.summary(tmp_path, CHUNK) is None


def test_a_part_that_is_cut_or_foreign_is_refused(tmp_path):
    written(tmp_path).commit()
    path = tmp_path / "part-000003-abc.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(RunError, match="is damaged, remove it"):
        parts.summary(tmp_path, CHUNK)
    path.write_bytes(whole)
    longer = Chunk(3, "abc", "a.parquet", 10, 15, 0)
    with pytest.raises(RunError, match="has 4 rows of chunk abc, not the 5 of abc"):
        parts.summary(tmp_path, longer)
