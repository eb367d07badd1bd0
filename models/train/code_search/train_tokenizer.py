"""Trains the tokenizer on the training pairs and writes them as token ids.

    python train_tokenizer.py --work DIR

Words of code are words of language: identifiers are cut where capitals or underscores say so, all
letters become small, and what is neither letter nor digit is left out. Writes DIR/tokenizer.json
and DIR/train.npz: for each pair its question, and its piece with CONTEXT tokens around it.
"""
import argparse
import itertools
import json
import pathlib

import numpy
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

VOCABULARY = 10000
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[Q]"]
LONGEST_QUESTION, LONGEST_PIECE, CONTEXT = 32, 160, 32  # Tokens.
CAPITALS = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"


def untrained():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(CAPITALS), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"[^\p{L}\p{N}]+"), "removed"),
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tokenizer


def files(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def trained(path):
    def texts():
        for file in files(path):
            for question, begin, end, _ in file["pairs"]:
                yield question
                yield file["text"][begin:end]
    tokenizer = untrained()
    tokenizer.train_from_iterator(texts(), trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $A [SEP] $B", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


class Rows:
    """Arrays of different lengths, one behind another."""

    def __init__(self):
        self.values, self.ends = [], [0]

    def add(self, values):
        self.values.extend(values)
        self.ends.append(len(self.values))

    def arrays(self, name):
        return {name: numpy.array(self.values, dtype=numpy.uint16), name + "_ends": numpy.array(self.ends)}


def around(ids, ends, begin, end):
    """(ids, first, behind): a piece's tokens with those around it, and where the piece is in them."""
    first, behind = numpy.searchsorted(ends, [begin + 1, end + 1])
    behind = min(behind, first + LONGEST_PIECE)
    low, high = max(0, first - CONTEXT), min(len(ends), behind + CONTEXT)
    return ids[low:high], first - low, behind - low


def encoded(tokenizer, path, at_once=64):
    """(file, encoding of its text, encodings of its questions)"""
    every = files(path)
    while group := list(itertools.islice(every, at_once)):
        texts = tokenizer.encode_batch([file["text"] for file in group], add_special_tokens=False)
        for file, text in zip(group, texts):
            yield file, text, tokenizer.encode_batch([pair[0] for pair in file["pairs"]],
                                                     add_special_tokens=False)


def encode(tokenizer, path, out):
    questions, pieces, places, packages, kinds = Rows(), Rows(), [], [], []
    for file, encoding, asked in encoded(tokenizer, path):
        text, ends = encoding.ids, numpy.array([offset[1] for offset in encoding.offsets])
        for (_, begin, end, kind), question in zip(file["pairs"], asked):
            ids = question.ids[:LONGEST_QUESTION]
            piece, first, behind = around(text, ends, begin, end)
            if behind - first < 4 or not ids:
                continue
            questions.add(ids)
            pieces.add(piece)
            places.append((first, behind))
            packages.append(file["package"])
            kinds.append(kind)
    numpy.savez(out, places=numpy.array(places), packages=numpy.array(packages), kinds=numpy.array(kinds),
                **questions.arrays("questions"), **pieces.arrays("pieces"))
    print(f"{out}: {len(places)} pairs, {len(pieces.values)} tokens of pieces", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    work = parser.parse_args().work
    path = work / "tokenizer.json"
    if not path.exists():
        trained(work / "train.jsonl").save(str(path))
    tokenizer = Tokenizer.from_file(str(path))
    encode(tokenizer, work / "train.jsonl", work / "train.npz")


if __name__ == "__main__":
    main()
