"""Every entry of the tests that run without neighbours (tests/conftest.py) names something that is there."""

import ast
import pathlib

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]


def table():
    """The dictionary ALONE of conftest.py."""
    for node in ast.parse((TESTS / "conftest.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "ALONE":
            return ast.literal_eval(node.value)
    return {}


def test_there_is_a_table():
    assert len(table()) > 5 and all(table().values())


@pytest.mark.parametrize("entry", table())
def test_an_entry_names_a_folder_a_file_or_a_test(entry):
    path, _, name = entry.partition("::")
    assert (TESTS / path).exists()
    if name:
        assert f"\ndef {name}(" in (TESTS / path).read_text()
