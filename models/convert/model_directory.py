"""The directory that converters write, and what they ask of a checkpoint before they do: names and
shapes are those that the model has, and no two tensors share memory unless the model ties them."""

import json

import pickle_to_safetensors
from restricted_unpickler import RefusedError


def shape(tensors, name, family):
    """Sizes of a tensor without which this is no model of the family."""
    if name not in tensors:
        raise RefusedError(f"no tensor {name!r}: not a {family}")
    return list(tensors[name].shape)


def check(tensors, wanted, optional=()):
    """Refuses names that are missing or not expected, and other shapes than wanted."""
    missing = sorted(wanted.keys() - tensors.keys() - set(optional))
    extra = sorted(tensors.keys() - wanted.keys())
    if missing or extra:
        raise RefusedError(f"tensors missing: {missing[:5]}, not expected: {extra[:5]}")
    for name, want in wanted.items():
        if name in tensors and list(tensors[name].shape) != want:
            raise RefusedError(f"{name} is {list(tensors[name].shape)}, expected {want}")


def untied(file):
    """{name: (file, tensor)} of a model that ties nothing."""
    tensors, ties = pickle_to_safetensors.collect_file(file)
    if ties:
        raise RefusedError(f"tensors share memory: {ties}")
    return tensors


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", "utf-8")


def write(directory, tensors, ties, config):
    """model.safetensors and config.json; returns the bytes of the weights. `tensors` and `ties` as
    pickle_to_safetensors.collect_file gives them."""
    directory.mkdir(parents=True, exist_ok=True)
    size = pickle_to_safetensors.write(directory / "model.safetensors", tensors, ties)
    write_json(directory / "config.json", config)
    return size
