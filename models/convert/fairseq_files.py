"""The files of a training with fairseq: a checkpoint of tensors and options, and beside it the
dictionary of the data, which the checkpoint does not hold and without which ids mean nothing."""

import argparse
import pathlib

import torch_file
from restricted_unpickler import RefusedError, check_state_dict

# safetensors' names of the element types that training leaves, and PyTorch's.
FLOATS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32"}
_SPECIALS = 4  # <s>, <pad>, </s> and <unk> stand before the dictionary.


def parser(description):
    made = argparse.ArgumentParser(description=description.split("\n")[0])
    made.add_argument("checkpoint", type=pathlib.Path, help="fairseq's .pt file")
    made.add_argument("dictionary", type=pathlib.Path, help="dict.txt of the training data")
    made.add_argument("directory", type=pathlib.Path, help="the model directory to write")
    made.add_argument("--force", action="store_true", help="replace model.safetensors")
    return made


def open_checkpoint(path, options, renamed=dict):
    """(file with .tensors renamed(those of "model"), what stands under the key `options`)"""
    found = {}

    def check(saved):
        if not isinstance(saved, dict) or not isinstance(saved.get("model"), dict):
            raise RefusedError(f'expected fairseq\'s dictionary with "model" and "{options}"')
        found["options"] = saved.get(options)
        return renamed(check_state_dict(saved["model"]))

    return torch_file.open_file(path, check), found["options"]


def check_tensors(tensors, wanted, optional):
    """Refuses missing, unknown and misshapen tensors by name."""
    for name, tensor in tensors.items():
        expected = wanted.get(name, optional.get(name))
        if expected is None:
            raise RefusedError(f"tensor {name!r} is none of this architecture")
        if tensor.shape != tuple(expected) or tensor.storage.dtype.name not in FLOATS:
            found = f"{tensor.storage.dtype.name} {list(tensor.shape)}"
            raise RefusedError(f"tensor {name!r}: expected floats {list(expected)}, found {found}")
    missing = sorted(wanted.keys() - tensors.keys())
    if missing:
        raise RefusedError(f"{len(missing)} tensors are missing, the first is {missing[0]!r}")


def symbols(path):
    return [line.rsplit(" ", 1)[0] for line in path.read_text("utf-8").splitlines()]


def check_dictionary(path, vocab, added=0):
    """`added`: ids behind the dictionary's that the model has."""
    count, specials = len(symbols(path)), _SPECIALS + added
    if count + specials != vocab:
        raise RefusedError(f"{path} has {count} symbols, which with {specials} specials make "
                           f"{count + specials} ids; the embedding has {vocab}")
