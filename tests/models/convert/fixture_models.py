"""The models of tests/golden (or LONGVIEW_GOLDEN) that converters have to give back."""

import json
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = pathlib.Path(os.environ.get("LONGVIEW_GOLDEN", ROOT / "tests/golden"))


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} of a file without gaps, and its metadata."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    ends = sorted(tuple(entry["data_offsets"]) for entry in header.values())
    assert ends[0][0] == 0 and ends[-1][1] == len(data) - 8 - length
    assert all(a[1] == b[0] for a, b in zip(ends, ends[1:]))
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        body = data[8 + length + begin : 8 + length + end]
        tensors[name] = (entry["dtype"], entry["shape"], body)
    return tensors, metadata


def cases(family):
    return sorted(path.name for path in (GOLDEN / family).iterdir())


def fixture(family, case):
    """The tensors and config.json of a model."""
    model = GOLDEN / family / case / "model"
    tensors, _ = read_safetensors(model / "model.safetensors")
    return tensors, json.loads((model / "config.json").read_text())
