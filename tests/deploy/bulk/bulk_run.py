"""Runs the bulk command, and reads what it wrote."""

import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from server_process import ROOT

SOURCES = [path for room in ("server", "models", "kernels", "client") for path in sorted((ROOT / room).rglob("*.cc"))]


def texts(count, size):
    """Real rows: pieces of the project's sources, from the beginning again if there are too few."""
    whole, wanted = "", count * size
    for path in SOURCES:
        if len(whole) < wanted:
            whole += path.read_text(encoding="utf-8")
    pieces = [whole[at:at + size] for at in range(0, len(whole) - size, size)]
    return [pieces[number % len(pieces)] for number in range(count)]


def write_rows(path, rows, group=5000):
    pq.write_table(pa.table({"id": [f"id-{number}" for number in range(len(rows))], "text": rows}), path,
                   row_group_size=group)


def start(environment, source, output, server, *more, task="classify", model="code-language", stderr=subprocess.PIPE):
    command = [sys.executable, "-m", "longview_bulk", "--input", source, "--output", output, "--servers", server,
               "--task", task, "--model", model, *more]
    return subprocess.Popen([str(part) for part in command], env=environment, stderr=stderr, text=True)


def run(*arguments, **options):
    """(exit status, stderr)."""
    process = start(*arguments, **options)
    _, said = process.communicate()
    return process.returncode, said


def parts(output):
    return sorted(pathlib.Path(output).glob("part-*.parquet"))


def answers(output):
    """All rows in their order; each of them once."""
    rows = pa.concat_tables([pq.read_table(path) for path in parts(output)]).to_pylist()
    rows.sort(key=lambda row: (row["file"], row["row"]))
    assert len({(row["file"], row["row"]) for row in rows}) == len(rows)
    return rows


def nothing_left_over(output):
    return not [path for path in pathlib.Path(output).rglob(".*") if path.is_file() or any(path.iterdir())]
