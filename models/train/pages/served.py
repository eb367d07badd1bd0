"""The directory that the server reads of a model that run.py trained."""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo"


def write(out, saved, config, preprocessor):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.half().contiguous() for name, value in saved["average"].items()}
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    # Weights in 16 bits are for size; answers are computed in 32.
    for name, content in (("config", config), ("preprocessor_config", preprocessor),
                          ("longview", {"dtype": "fp32"})):
        (out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def main(description, model, export, arguments=None):
    """The program that calls export(what the run saved in DIR/<model>.pt, directory)."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=ZOO / model)
    options = parser.parse_args(arguments)
    saved = torch.load(options.work / f"{model}.pt", weights_only=True, map_location="cpu")
    export(saved, options.out)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{options.out}: step {saved['step']}, {size / 1e6:.2f} MB")
