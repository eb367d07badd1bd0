"""The two tasks as arrays, the same for every family.

    python data.py listops --work DIR [--train 96000 --test 2000 --shortest 500 --longest 2000]
    python data.py bytes --work DIR --documents CORPUS [--longest 4000]

listops draws expressions by the public grammar from --seed; training and test never share one.
bytes reads CORPUS/train.jsonl and CORPUS/test.jsonl of ../code_language/collect.py, whose splits
share no package: the first bytes of a source file, its language is the label. Files stand in an
order drawn from --seed, so that any first part of a split is a sample of all of it. Writes
DIR/<task>/{train,test}.npz (symbols one after the other, offsets, labels) and DIR/<task>/labels.json.
"""

import argparse
import itertools
import json
import pathlib
import random

import numpy

import grammar

TASKS = ("listops", "bytes")


def write(path, documents, labels):
    offsets = numpy.cumsum([0, *map(len, documents)])
    numpy.savez_compressed(path, symbols=numpy.concatenate(documents), offsets=offsets,
                           labels=numpy.array(labels))
    print(f"{path}: {len(labels)} documents, {offsets[-1] / len(labels):.0f} symbols each")


def listops(options):
    number = {symbol: index for index, symbol in enumerate(grammar.SYMBOLS)}
    drawn = grammar.expressions(options.seed, options.shortest, options.longest)
    for split, count in (("test", options.test), ("train", options.train)):
        chosen = list(itertools.islice(drawn, count))
        documents = [numpy.array([number[symbol] for symbol in symbols], numpy.uint8)
                     for symbols in chosen]
        write(options.work / "listops" / f"{split}.npz", documents, list(map(grammar.value, chosen)))
    return [str(digit) for digit in range(10)]


def source_bytes(options):
    splits = {}
    for split in ("train", "test"):
        with open(options.documents / f"{split}.jsonl", encoding="utf-8") as lines:
            splits[split] = [(document["language"], document["text"].encode()[:options.longest])
                             for document in map(json.loads, lines)]
    names = sorted({name for found in splits.values() for name, _ in found})
    for split, found in splits.items():
        random.Random(options.seed).shuffle(found)
        write(options.work / "bytes" / f"{split}.npz",
              [numpy.frombuffer(text, numpy.uint8) for _, text in found],
              [names.index(name) for name, _ in found])
    return names


class Documents:
    """One split."""

    def __init__(self, path):
        stored = numpy.load(path)
        self.symbols, self.offsets = stored["symbols"], stored["offsets"]
        self.labels = stored["labels"]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.symbols[self.offsets[index]:self.offsets[index + 1]].astype(numpy.int64)

    def batch(self, seed, step, size):
        """Documents and labels that depend on seed and step only. Documents of like length stand
        together, so that little is padded."""
        rng = numpy.random.default_rng([seed, step])
        pool = rng.choice(len(self), min(len(self), 16 * size), replace=False)
        pool = pool[numpy.argsort(numpy.diff(self.offsets)[pool], kind="stable")]
        first = rng.integers(len(pool) // size) * size if len(pool) >= size else 0
        chosen = pool[first:first + size]
        return [self[index] for index in chosen], self.labels[chosen]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--documents", type=pathlib.Path, help="bytes: what collect.py wrote")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", type=int, default=96000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--shortest", type=int, default=500)
    parser.add_argument("--longest", type=int)
    options = parser.parse_args(arguments)
    if options.longest is None:
        options.longest = 2000 if options.task == "listops" else 4000
    if options.task == "bytes" and options.documents is None:
        parser.error("bytes needs --documents")
    (options.work / options.task).mkdir(parents=True, exist_ok=True)
    names = listops(options) if options.task == "listops" else source_bytes(options)
    (options.work / options.task / "labels.json").write_text(json.dumps(names) + "\n")


if __name__ == "__main__":
    main()
