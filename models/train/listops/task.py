"""Tasks and sizes for every family, documents as padded ids, and how programs name them."""

import argparse
import dataclasses
import importlib
import json
import pathlib

import torch

import data
import grammar

FAMILIES = ("transformer_ls", "luna", "cst", "longformer")


def family(name):
    return importlib.import_module(f"family_{name}")


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    symbols: int  # Size of the alphabet; documents are numbers below it.
    longest: int  # Symbols of a document.
    labels: tuple

    def id2label(self):
        return {str(index): name for index, name in enumerate(self.labels)}


@dataclasses.dataclass(frozen=True)
class Size:
    width: int = 128
    layers: int = 2
    heads: int = 4
    ffn: int = 256


def read(work, name):
    """The task of what data.py wrote, with its documents."""
    folder = pathlib.Path(work) / name
    splits = {split: data.Documents(folder / f"{split}.npz") for split in ("train", "test")}
    longest = max(int((part.offsets[1:] - part.offsets[:-1]).max()) for part in splits.values())
    symbols = len(grammar.SYMBOLS) if name == "listops" else 256
    labels = tuple(json.loads((folder / "labels.json").read_text()))
    return Task(name, symbols, longest, labels), splits


def parser(description):
    """Parser of a program for one family's classifier of a task: FAMILY --task NAME --work DIR."""
    made = argparse.ArgumentParser(description=description,
                                   formatter_class=argparse.RawTextHelpFormatter)
    made.add_argument("family", choices=FAMILIES)
    made.add_argument("--task", choices=data.TASKS, default="listops")
    made.add_argument("--work", type=pathlib.Path, required=True)
    return made


def padded(documents, form, task):
    """Ids [B, T] and which of them are tokens."""
    before, after = form.around(task)
    rows = [[*before, *(document + form.FIRST_SYMBOL).tolist(), *after] for document in documents]
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), form.PAD)
    for row, tokens in zip(ids, rows, strict=True):
        row[:len(tokens)] = torch.tensor(tokens)
    lengths = torch.tensor(list(map(len, rows)))
    return ids, torch.arange(width) < lengths[:, None]
