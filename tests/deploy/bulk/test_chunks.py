"""Input files become chunks, and chunks their rows."""

import dataclasses
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from longview_bulk import plan, rows
from longview_bulk.settings import Question, RunError, UsageError

QUESTION = Question("", "classify", "m", text_column="text", key_columns=("id",), chunk_rows=10)


def question(path, **changes):
    return dataclasses.replace(QUESTION, input=str(path), **changes)


def parquet(path, count, group):
    pq.write_table(pa.table({"text": [f"text {n}" for n in range(count)], "id": list(range(count)),
                             "ids": [[n, n + 1] for n in range(count)]}), path, row_group_size=group,
                   compression="none")


def read_all(asked, output):
    """[(file, row, value, id)] by way of chunks."""
    made = plan.make_plan(asked, output)
    keys = rows.key_schema(asked, [file.name for file in made.files])
    found = []
    for chunk in made.chunks():
        assert plan.path_of(asked.input, chunk.file).exists()
        count = 0
        for batch in rows.read(asked, chunk, keys):
            assert len(batch.values) <= rows.BATCH
            for number, (value, key) in enumerate(zip(batch.values, batch.keys.column("id").to_pylist())):
                found.append((chunk.file, batch.begin + number, value, key))
                count += 1
        assert count == chunk.rows
    return found


@pytest.mark.parametrize("group", [1, 3, 10, 17, 64, 2000])
@pytest.mark.parametrize("chunk_rows", [1, 10, 300, 5000])
def test_each_row_of_parquet_is_in_one_chunk(tmp_path, group, chunk_rows):
    parquet(tmp_path / "a.parquet", 700, group)
    found = read_all(question(tmp_path / "a.parquet", chunk_rows=chunk_rows), tmp_path / "out")
    assert found == [("a.parquet", n, f"text {n}", n) for n in range(700)]


def test_a_row_group_is_not_read_over_and_over(tmp_path):
    parquet(tmp_path / "a.parquet", 6400, 6400)
    made = plan.make_plan(question(tmp_path / "a.parquet", chunk_rows=1), tmp_path / "out")
    assert len(list(made.chunks())) == 32


def test_lines_of_jsonl_and_what_is_wrong_with_them(tmp_path):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    lines = [json.dumps({"text": f"täxt {n}", "id": n if n % 2 else f"s{n}"}) for n in range(23)]
    lines[4:4] = ["", "not json", "[1]", '{"text": 5}', "{}", " "]
    (folder / "sub/b.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "_hidden.jsonl").write_text("{}")
    found = read_all(question(folder), tmp_path / "out")
    assert [row for _, row, _, _ in found] == list(range(27)) and {name for name, *_ in found} == {"sub/b.jsonl"}
    assert [value for _, _, value, _ in found[:4]] == [f"täxt {n}" for n in range(4)]
    said = [value.message for _, _, value, _ in found[4:8]]
    assert said[0].startswith("the line is not JSON: ") and said[1:] == [
        "the line is not a JSON object", "text: '5' is no string", "text: 'None' is no string"]
    assert [key for *_, key in found[8:12]] == ["s4", "5", "s6", "7"]


def test_token_ids_and_pictures(tmp_path):
    parquet(tmp_path / "a.parquet", 3, 2)
    ids = read_all(question(tmp_path / "a.parquet", text_column=None, ids_column="ids"), tmp_path / "out")
    assert [value for _, _, value, _ in ids] == [[0, 1], [1, 2], [2, 3]]
    bad = read_all(question(tmp_path / "a.parquet", text_column=None, ids_column="id"), tmp_path / "bad")
    assert bad[1][2] == rows.BadRow("id: '1' is no list of token ids")
    paths = read_all(question(tmp_path / "a.parquet", text_column=None, image_column="text"), tmp_path / "paths")
    assert paths[0][2] == tmp_path / "text 0"
    assert "No such file" in rows.picture(paths[0][2]).message


def test_ids_follow_contents_range_and_question(tmp_path):
    parquet(tmp_path / "a.parquet", 30, 10)
    asked = question(tmp_path / "a.parquet")
    first = [chunk.id for chunk in plan.make_plan(asked, tmp_path / "one").chunks()]
    assert len(set(first)) == 3
    os.utime(tmp_path / "a.parquet", (1, 1))  # Copied elsewhere: the same.
    assert [chunk.id for chunk in plan.make_plan(asked, tmp_path / "two").chunks()] == first
    other = [chunk.id for chunk in plan.make_plan(question(tmp_path / "a.parquet", model="n"),
                                                  tmp_path / "three").chunks()]
    assert not set(first) & set(other)


@pytest.mark.parametrize("change, says", [
    ({"model": "n"}, r"--model: 'n' is not 'm'"), ({"chunk_rows": 11}, r"--chunk-rows: 11 is not 10"),
    ({"options": (("top_k", 2),)}, r"--top-k: 2 is not None"), ({"key_columns": ()}, r"--key-columns: \[\] is not"),
])
def test_another_question_is_refused(tmp_path, change, says):
    parquet(tmp_path / "a.parquet", 30, 10)
    plan.make_plan(question(tmp_path / "a.parquet"), tmp_path / "out")
    with pytest.raises(UsageError, match=says + ".*give another --output"):
        plan.make_plan(question(tmp_path / "a.parquet", **change), tmp_path / "out")


def test_another_input_is_refused(tmp_path):
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    parquet(folder / "a.parquet", 30, 10)
    made = plan.make_plan(question(folder), output)
    os.utime(folder / "a.parquet", (1, 1))
    again = plan.make_plan(question(folder), output)
    assert list(again.chunks()) == list(made.chunks())
    parquet(folder / "b.parquet", 3, 10)
    with pytest.raises(UsageError, match="--input: b.parquet is new"):
        plan.make_plan(question(folder), output)
    (folder / "b.parquet").unlink()
    whole = (folder / "a.parquet").read_bytes()
    (folder / "a.parquet").write_bytes(whole.replace(b"text 7", b"TEXT 7"))
    with pytest.raises(UsageError, match="--input: a.parquet is changed"):
        plan.make_plan(question(folder), output)
    with pytest.raises(RunError, match="a.parquet was changed during the run"):
        plan.check_unchanged(str(folder), again.files[0])
    (folder / "a.parquet").unlink()
    with pytest.raises(UsageError, match="has no file that ends in"):
        plan.make_plan(question(folder), output)


def test_a_column_that_is_not_there_is_refused(tmp_path):
    parquet(tmp_path / "a.parquet", 3, 2)
    for change, flag in (({"text_column": "body"}, "text-column"), ({"key_columns": ("key",)}, "key-columns")):
        with pytest.raises(UsageError, match=f"--{flag}: a.parquet has no column .* but text, id, ids"):
            rows.key_schema(question(tmp_path / "a.parquet", **change), ["a.parquet"])
