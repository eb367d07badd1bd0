"""Compares model.py's logits with the recorded ones of another implementation.

    python check_golden.py DIRECTORY...

Each directory is a case of the golden set: model/, inputs.safetensors, expected.safetensors.
Exit status 1 if a logit differs by more than the case allows.
"""
import json
import pathlib
import sys

import safetensors.torch
import torch

import model as architecture


@torch.no_grad()
def difference(case):
    model = architecture.load(case / "model")
    inputs = safetensors.torch.load_file(case / "inputs.safetensors")
    expected = safetensors.torch.load_file(case / "expected.safetensors")
    worst = 0.0
    for name, ids in inputs.items():
        if not name.startswith("input_ids."):
            continue
        which = name.removeprefix("input_ids.")
        rows = expected.get(f"positions.{which}", torch.arange(len(ids)))
        logits = model(ids[None])[0][rows]
        worst = max(worst, (logits - expected[f"logits.{which}"]).abs().max().item())
    return worst, json.loads((case / "case.json").read_text())["tolerance"]["logits"]


def main():
    failed = False
    for directory in map(pathlib.Path, sys.argv[1:]):
        found, tolerance = difference(directory)
        failed |= found > tolerance
        print(f"{directory.name}: largest difference {found:.2e}, allowed {tolerance:.0e}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
