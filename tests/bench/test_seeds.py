"""seeds.py: every table of the papers runs through at its tiny size."""

import importlib
import pathlib
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parent
sys.path.append(str(BENCH))

import seeds  # noqa: E402
from tables.table import Options, Verdict  # noqa: E402

# Some minutes for all of them.
pytestmark = pytest.mark.slow

# Peers that a table may need, of tests/bench/README.md.
PEERS = ("torch", "transformers", "openvino")
WRITTEN = [name for name, module in seeds.TABLES.items() if (BENCH / f"tables/{module}.py").exists()]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_runs_at_its_tiny_size(name, tmp_path):
    try:
        module = importlib.import_module(f"tables.{seeds.TABLES[name]}")
        table = module.run(Options(tiny=True, scratch=str(tmp_path)))
    except ModuleNotFoundError as missing:
        if missing.name not in PEERS:
            raise
        pytest.skip(f"{missing.name} is not installed")
    assert table.rows and table.title in table.markdown()
    assert all(row.name and row.ours for row in table.rows)
    assert all(row.verdict in Verdict for row in table.rows)
