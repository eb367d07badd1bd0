"""Draws the pictures that training and tests read, once.

    python data.py --work DIR [--train 4200] [--test 420]

DIR/<split>-<shard>.npz with pixels [n, SIDE, SIDE, 3] and labels [n]; shards that are there stay, and
training may begin with the first. `seen` is drawn like `train`, with other seeds; `styles` with texts
and in forms that training never saw: other fonts, colours of code, rulings of tables, fields of forms,
kinds of charts, diagrams and photographs, columns of text.
"""

import argparse
import pathlib

import numpy as np
from PIL import Image

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
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    write(options.work, "train", options.train, 0, False)
    write(options.work, "styles", options.test, 10 ** 6, True)
    write(options.work, "seen", options.test, 2 * 10 ** 6, False)


if __name__ == "__main__":
    main()
