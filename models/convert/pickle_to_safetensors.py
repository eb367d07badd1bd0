#!/usr/bin/env python3
"""Converts pickled PyTorch weights into model.safetensors, without PyTorch.

    python3 models/convert/pickle_to_safetensors.py DIR

DIR holds pytorch_model.bin, or pytorch_model.bin.index.json and its shards, or one other .bin,
.pt or .pth file; model.safetensors is written beside it. Tensors that share memory are stored
once, under the alphabetically first name; the header's __metadata__ says which name that was.
Element types stay as they are. Nothing in the pickle is run: names other than those of tensors
and dictionaries are refused.
"""

import argparse
import json
import os
import pathlib
import sys

import command_line
import torch_file
from restricted_unpickler import RefusedError

_TRAINING_STATE = {
    "training_args.bin",
    "optimizer.pt",
    "optimizer.bin",
    "scheduler.pt",
    "rng_state.pth",
}


def find_weights(directory):
    """The pickled files of a model directory, in the order of its index."""
    single = directory / "pytorch_model.bin"
    index = directory / "pytorch_model.bin.index.json"
    if single.exists():
        return [single]
    if index.exists():
        return _shards(index)
    others = sorted(
        path
        for path in directory.iterdir()
        if path.suffix in (".bin", ".pt", ".pth") and path.name not in _TRAINING_STATE
    )
    if len(others) != 1:
        names = ", ".join(path.name for path in others) or "none"
        raise RefusedError(f"expected pytorch_model.bin or one .bin, .pt or .pth file; found {names}")
    return others


def _shards(index):
    try:
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RefusedError(f"{index.name}: no readable weight_map: {error}") from error
    for name in names:
        if not isinstance(name, str) or name.startswith(".") or "/" in name or "\\" in name:
            raise RefusedError(f"{index.name}: shard {name!r} is not the name of a file beside it")
    return [index.parent / name for name in names]


def collect(paths):
    """Returns ({name: (file, tensor)}, {removed name: kept name}) over all files."""
    tensors, ties = {}, {}
    for path in paths:
        found, shared = collect_file(torch_file.open_file(path))
        for name in [*found, *shared]:
            if name in tensors or name in ties:
                raise RefusedError(f"{path.name}: tensor {name!r} is in another shard as well")
        tensors.update(found)
        ties.update(shared)
    return tensors, ties


def collect_file(file):
    """The same for one open file."""
    tensors, ties, kept = {}, {}, {}
    for name in sorted(file.tensors):
        tensor = file.tensors[name]
        first = kept.setdefault(tensor, name)
        if first == name or tensor.elements == 0:
            tensors[name] = (file, tensor)
        else:
            ties[name] = first
    return tensors, ties


def write(path, tensors, ties):
    """Writes one safetensors file; storages are read while writing, so that memory holds one."""
    # Larger elements first keeps all of them aligned; storage order keeps reads sequential.
    order = sorted(tensors, key=lambda name: (-tensors[name][1].storage.dtype.size, name))
    header = {"__metadata__": {"format": "pt", **ties}}
    end = 0
    for name in order:
        tensor = tensors[name][1]
        begin, end = end, end + tensor.bytes
        header[name] = {
            "dtype": tensor.storage.dtype.name,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as out:
            out.write(len(text).to_bytes(8, "little"))
            out.write(text)
            for name in order:
                file, tensor = tensors[name]
                data = file.read_storage(tensor.storage) if tensor.elements else b""
                out.write(torch_file.tensor_bytes(tensor, data))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return end


def new_weights(directory, force):
    """The path to write to; refuses to replace weights that nobody gave up."""
    output = directory / "model.safetensors"
    if output.exists() and not force:
        raise RefusedError(f"{output} exists already; --force replaces it")
    return output


def convert(directory, force=False):
    """Converts a directory; returns a line for the user."""
    output = new_weights(directory, force)
    tensors, ties = collect(find_weights(directory))
    if not tensors:
        raise RefusedError("the state dict is empty")
    size = write(output, tensors, ties)
    shared = f", {len(ties)} of shared memory left out" if ties else ""
    return f"{output}: {len(tensors)} tensors, {size} bytes{shared}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path, help="a model directory")
    parser.add_argument("--force", action="store_true", help="replace model.safetensors")
    options = parser.parse_args(arguments)
    return command_line.run(options.directory, lambda: convert(options.directory, options.force))


if __name__ == "__main__":
    sys.exit(main())
