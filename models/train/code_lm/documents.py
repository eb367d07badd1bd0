"""The corpus of code_language as byte documents in which far context helps.

    python documents.py --work DIR

Reads DIR/train.jsonl and DIR/test.jsonl (code_language/collect.py writes them) and writes
DIR/code-lm/{train,test}.npz. A group is what one package has in one language, in path order;
its files follow each other as `tail -n +1 FILE...` prints them, under `==> path <==` lines.
"""
import argparse
import collections
import json
import pathlib
import re

import numpy

LANGUAGES = ["C", "C++", "Go", "Java", "JavaScript", "Python", "Rust"]
BOUNDARY = 256  # bos and eos: the id beside the 256 bytes
ALONE = 0.25  # share of training documents that are one file without its path line
FROM_START = 0.4  # share of training documents that begin where a file begins; others at a line
TOP_LEVEL = 0.5  # share of those others that begin at a line without indentation
SMOOTHING = 0.7  # A group is drawn in proportion to its bytes to this power, within its language.
PYTHON = 0.55  # share of training documents in Python; the other languages have equal shares
BLANKS = 20  # A longer run of spaces is cut to this in training: a small model would not leave it again.
LOOK_AHEAD = 2000  # bytes after a random place in which a line to begin at is sought

LONG_BLANK = re.compile(rb" {%d,}" % (BLANKS + 1))
ANY_LINE, TOP_LINE = re.compile(rb"\n()[^\n]"), re.compile(rb"\n()[A-Za-z@#/]")


def encode(source, target, cut):
    groups = collections.defaultdict(list)
    with open(source, encoding="utf-8") as lines:
        for document in map(json.loads, lines):
            if document["language"] in LANGUAGES and not document["path"].endswith(".pyi"):
                key = (document["package"], document["language"])
                groups[key].append((document["path"], document["text"]))
    data, headers, offsets, members = [], [], [0], []
    for index, key in enumerate(sorted(groups)):
        for path, text in sorted(groups[key]):
            header = f"==> {path} <==\n".encode()
            body = text.encode().rstrip(b"\n") + b"\n\n"
            if cut:
                body = LONG_BLANK.sub(b" " * BLANKS, body)
            data.append(header + body)
            headers.append(len(header))
            offsets.append(offsets[-1] + len(header) + len(body))
            members.append(index)
    names = [f"{package} {language}" for package, language in sorted(groups)]
    numpy.savez_compressed(target, data=numpy.frombuffer(b"".join(data), numpy.uint8), offsets=offsets,
                           headers=headers, groups=members, names=names)
    print(f"{target}: {len(members)} files, {len(groups)} groups, {offsets[-1] / 1e6:.1f} MB")


class Corpus:
    """One split, as documents of ids."""

    def __init__(self, path):
        stored = numpy.load(path)
        self.data, self.offsets, self.headers = stored["data"], stored["offsets"], stored["headers"]
        self.groups, self.names = stored["groups"], stored["names"]
        self.first = numpy.searchsorted(self.groups, numpy.arange(len(self.names) + 1))
        sizes = numpy.diff(self.offsets[self.first]) ** SMOOTHING
        spoken = numpy.array([name.split(" ")[-1] for name in self.names])
        for language in numpy.unique(spoken):
            share = PYTHON if language == "Python" else (1 - PYTHON) / (len(LANGUAGES) - 1)
            sizes[spoken == language] *= share / sizes[spoken == language].sum()
        self.shares = sizes / sizes.sum()

    def random_document(self, rng):
        """[ids] from a random place of a group to its end, or to its file's end; no boundaries."""
        group = rng.choice(len(self.shares), p=self.shares)
        file = int(rng.integers(self.first[group], self.first[group + 1]))
        begin, end = self.offsets[file], self.offsets[self.first[group + 1]]
        if rng.random() < ALONE:
            begin, end = begin + self.headers[file], self.offsets[file + 1]
        if rng.random() >= FROM_START:
            begin = self.line_after(rng.integers(begin, self.offsets[file + 1]), end,
                                    rng.random() < TOP_LEVEL)
        return self.data[begin:end]

    def line_after(self, begin, end, top):
        """Where the next line begins, one without indentation if `top`; `begin` if none is near."""
        near = self.data[begin:min(end, begin + LOOK_AHEAD)].tobytes()
        found = (TOP_LINE if top else ANY_LINE).search(near)
        return begin + found.start(1) if found else begin

    def batch(self, seed, step, size, length):
        """[size, length + 1] ids; depends on the arguments only. Every row begins with a boundary."""
        rng = numpy.random.default_rng([seed, step])
        rows = numpy.full((size, length + 1), BOUNDARY, dtype=numpy.int64)
        for row in rows:
            at = 0
            while at < length:
                part = self.random_document(rng)[:length - at]
                row[at + 1:at + 1 + len(part)] = part
                at += len(part) + 1
        return rows

    def held_out(self, length, per_group):
        """(name, bytes) of up to per_group stretches of `length` bytes of each group, from files' starts."""
        for group, name in enumerate(self.names):
            files = range(self.first[group], self.first[group + 1])
            end = self.offsets[files.stop]
            at = taken = 0
            for file in files:
                begin = self.offsets[file]
                if begin >= at and begin + length <= end and taken < per_group:
                    yield str(name), self.data[begin:begin + length]
                    at, taken = begin + length, taken + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    work = parser.parse_args().work
    (work / "code-lm").mkdir(exist_ok=True)
    for split in ("train", "test"):
        encode(work / f"{split}.jsonl", work / "code-lm" / f"{split}.npz", cut=split == "train")


if __name__ == "__main__":
    main()
