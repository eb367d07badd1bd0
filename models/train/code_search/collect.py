"""Collects questions and what answers them from the packages that are installed here.

    python collect.py --work DIR [--also python=VENV/lib/python3.11/site-packages ...]

Writes DIR/train.jsonl and DIR/test.jsonl, one file of a package a line: {package, path, text,
pairs: [[question, begin, end, kind]]}. The same machine gives the same files again.
"""
import argparse
import collections
import hashlib
import json
import pathlib
import random
import re

import pairs
import sources

MOST_PAIRS = {"train": 5000, "test": 1200}  # A package gives no more.


def fingerprint(text):
    return hashlib.sha1(re.sub(r"\W+", " ", text).lower().encode()).digest()[:10]


def files_with_pairs(also):
    """(package, path, text, pairs)"""
    for package, root in sources.packages(also):
        for path in sources.files(root):
            try:
                if path.stat().st_size > sources.LARGEST:
                    continue
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            yield (package, path, *pairs.of_file(path, text))
    for package, path in sources.manual_pages():
        try:
            yield (package, path, *pairs.manual(path.read_bytes()))
        except OSError:
            continue


def by_split(also):
    """Packages in order of their names, {split: {package: [(path, text, pairs)]}}, no piece or
    question twice."""
    found = {"test": collections.defaultdict(list), "train": collections.defaultdict(list)}
    for package, path, text, of_file in files_with_pairs(also):
        if of_file:
            found["test" if sources.held_out(package) else "train"][package].append((path, text, of_file))
    seen = set()
    for split in ("test", "train"):  # A piece that is in both stays in the test alone.
        for package in sorted(found[split]):
            for _, text, of_file in found[split][package]:
                kept = []
                for pair in of_file:
                    keys = {fingerprint(pair[0]), fingerprint(text[pair[1]:pair[2]])}
                    if not keys & seen:
                        seen |= keys
                        kept.append(pair)
                of_file[:] = kept
    return found


def limited(files, most, rng):
    """At most so many pairs of a package, drawn at random."""
    places = [(f, p) for f, (_, _, of_file) in enumerate(files) for p in range(len(of_file))]
    chosen = set(places if len(places) <= most else rng.sample(places, most))
    for f, (path, text, of_file) in enumerate(files):
        kept = [pair for p, pair in enumerate(of_file) if (f, p) in chosen]
        if kept:
            yield path, text, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--also", action="append", default=[], help="KIND=FOLDER, a kind of sources.KINDS")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    also = collections.defaultdict(list)
    for pair in options.also:
        kind, folder = pair.split("=", 1)
        also[kind].append(folder)
    for split, of_packages in by_split(also).items():
        counts, kinds = collections.Counter(), collections.Counter()
        with open(options.work / f"{split}.jsonl", "w", encoding="utf-8") as out:
            for package in sorted(of_packages):
                rng = random.Random(f"longview {package}")
                for path, text, kept in limited(of_packages[package], MOST_PAIRS[split], rng):
                    counts[package] += len(kept)
                    kinds.update(pair[3] for pair in kept)
                    out.write(json.dumps({"package": package, "path": str(path), "text": text,
                                          "pairs": kept}) + "\n")
        print(f"{split}: {sum(counts.values())} pairs of {len(counts)} packages, {dict(kinds)}")
        print(f"  most: {counts.most_common(25)}", flush=True)


if __name__ == "__main__":
    main()
