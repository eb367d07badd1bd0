"""Draws the pictures that training and tests read, once.

    python data.py --work DIR [--train 4200] [--test 420] [--documents DIR --rendered 2100]

DIR/<split>-<shard>.npz with pixels [n, SIDE, SIDE, 3] and labels [n]; shards that are there stay, and
training may begin with the first. `seen` is drawn like `train`, with other seeds; `styles` with texts
and in forms that training never saw: other fonts, colours of code, rulings of tables, fields of forms,
kinds of charts, diagrams and photographs, columns of text. `--documents` adds to `train` windows of the rendered
pages of ../documents, and writes `documents`: windows of packages that are held out.
"""

import argparse
import pathlib

import numpy as np
from PIL import Image

import documents
import kinds

SIDE = 128
SHARD = 210


def pixels(image):
    """As the server resizes: see preprocessor_config.json in export.py."""
    return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def write(work, split, count, first_seed, held_out):
    for first in range(0, count, SHARD):
        path = work / f"{split}-{first // SHARD:03}.npz"
        if path.exists():
            continue
        places = range(first, min(first + SHARD, count))
        labels = np.array([i % len(kinds.LABELS) for i in places])
        drawn = [pixels(kinds.draw(kinds.LABELS[label], first_seed + i, held_out))
                 for i, label in zip(places, labels, strict=True)]
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, pixels=np.stack(drawn), labels=labels)
        partial.rename(path)
        print(path, flush=True)


def write_documents(work, split, folder, count):
    """Windows of rendered pages, in one shard: those for tests as they are."""
    path = work / f"{split}-rendered.npz"
    if path.exists():
        return
    found = list(documents.pictures(folder, count, wear=split == "train"))
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, pixels=np.stack([pixels(image) for _, image in found]),
             labels=np.array([kinds.LABELS.index(label) for label, _ in found]))
    partial.rename(path)
    print(path, flush=True)


def shards(work, split):
    """The finished ones only."""
    return sorted(path for path in work.glob(f"{split}-*.npz") if "partial" not in path.name)


def read(work, split):
    """pixels, labels"""
    parts = [np.load(path) for path in shards(work, split)]
    if not parts:
        raise SystemExit(f"{work} has no {split} data: run data.py")
    return tuple(np.concatenate([part[key] for part in parts]) for key in ("pixels", "labels"))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--train", type=int, default=4200)
    parser.add_argument("--test", type=int, default=420)
    parser.add_argument("--documents", type=pathlib.Path, help="what ../documents/render.py wrote")
    parser.add_argument("--rendered", type=int, default=2100)
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.documents:
        write_documents(options.work, "documents", options.documents / "held_out", options.test)
        write_documents(options.work, "train", options.documents / "train", options.rendered)
    write(options.work, "train", options.train, 0, False)
    write(options.work, "styles", options.test, 10 ** 6, True)
    write(options.work, "seen", options.test, 2 * 10 ** 6, False)


if __name__ == "__main__":
    main()
