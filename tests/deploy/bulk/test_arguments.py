"""The command line: what it refuses, and how it says so."""

import pytest
from longview_bulk.arguments import parse_command
from longview_bulk.settings import UsageError, parse

BASE = ["--input", "in", "--output", "out", "--servers", "a:9000", "--model", "m", "--task"]


@pytest.mark.parametrize("more, says", [
    (["sort"], "--task: invalid choice: 'sort'"), (["classify", "--workers", "0"], "--workers: 0 is below 1"),
    (["classify", "--workers", "x"], "--workers: invalid int value: 'x'"),
    (["classify", "--image-column", "i"], "--image-column: classify takes one of --text-column or --ids-column"),
    (["detect", "--text-column", "i"], "--text-column: detect takes one of --image-column"),
    (["classify", "--text-column", "a", "--ids-column", "b"], "--text-column, --ids-column: classify takes one"),
    (["embed", "--top-k", "3"], "--top-k: embed has no such option"),
    (["classify", "--key-columns", "id,label"], "--key-columns: 'label' is the name of another column"),
    (["classify", "--of", "3", "--index", "3"], r"--index: 3 is not in \[0, 3\)"),
    (["classify", "--of", "3", "--index", "0", "--ray"], "--ray: not together with --of"),
    (["classify", "--patience", "5"], "--patience: 5 is below --timeout 120"),
    (["classify", "--servers", "a"], "--servers: 'a' is not HOST:GRPC_PORT"),
    (["classify", "--servers", ","], "--servers: '' is not HOST:GRPC_PORT"),
    (["classify", "--chunk", "5"], "unrecognized arguments: --chunk 5")])
def test_what_is_wrong_is_named(more, says):
    with pytest.raises(UsageError, match=says):
        parse_command([*BASE, *more])


def test_defaults_and_options():
    command = parse_command([*BASE, "generate", "--max-tokens", "5", "--temperature", "0.5", "--ray"])
    assert command.question.text_column == "text" and command.ray == "" and not command.in_job
    assert command.question.options == (("max_tokens", 5), ("temperature", 0.5))
    assert parse_command([*BASE, "detect"]).question.image_column == "image"


def test_the_index_of_a_job(monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    command = parse_command([*BASE, "classify", "--of", "3"])
    assert (command.index, command.of, command.in_job) == (2, 3, True)


def test_addresses():
    assert parse("pods.svc:9000") == ("pods.svc", 9000, 8080)
    assert parse("[::1]:9000/81") == ("::1", 9000, 81)
