"""Renders the pages of the packages of collect.py and reads from the browser what is where on them.

    python render.py --work DIR [--split train] [--strips 2500]

Needs Chromium and its driver. Writes DIR/SPLIT/NNNNN.jpg and .json (windows.py), page by page of one package after
another; goes on where it ended. Held-out pages keep their own style.
"""

import argparse
import io
import pathlib
import random
import signal
import sys

from PIL import Image

import browser
import collect
import looks
import windows

STRIP = 2560  # Pixels high at most: two windows.
FEWEST_PARTS = 3


def rounds(work, split):
    """(package, path) for ever: a page of each package, then another of each."""
    rng, left = random.Random(split), {}
    names = collect.packages(split)
    while True:
        for name in names:
            if not left.get(name):
                left[name] = collect.pages(work / "unpacked" / name)
                rng.shuffle(left[name])
            if left[name]:
                yield name, left[name].pop()


def usable(parts, size):
    """Whether a strip has parts of more than one kind, and not mostly nothing."""
    if len(parts) < FEWEST_PARTS or len({part[0] for part in parts}) < 2:
        return False
    covered = sum((x1 - x0) * (y1 - y0) for _, x0, y0, x1, y1 in parts)
    return covered > 0.12 * size[0] * size[1]


def cut_strips(picture, scale, parts):
    """(image, parts) of a capture, of STRIP rows or what is left."""
    scaled = [[label, *(round(value * scale, 1) for value in box)] for label, *box in parts]
    for top in range(0, picture.height, STRIP):
        bottom = min(top + STRIP, picture.height)
        if bottom - top < 500:
            continue
        found = windows.cut(scaled, 0, top, picture.width, bottom)
        if usable([(label, *box) for label, box in found], (picture.width, bottom - top)):
            yield (picture.crop((0, top, picture.width, bottom)),
                   [[label, *box] for label, box in found])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--split", choices=collect.SPLITS, default="train")
    parser.add_argument("--strips", type=int, default=2500)
    options = parser.parse_args(arguments)
    folder = options.work / options.split
    folder.mkdir(parents=True, exist_ok=True)
    done = max((int(path.stem) + 1 for path, _ in windows.strips(folder)), default=0)
    rng = random.Random(f"{options.split} {done}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # The browser ends too.
    shown, number = browser.Browser(), done
    try:
        for page, (package, path) in enumerate(rounds(options.work, options.split)):
            if page < 3 * done // 4:  # Shown by the run before.
                continue
            if number >= options.strips:
                break
            held_out = options.split == "held_out"
            opened = shown.open(path, looks.draw(rng, plain=held_out), STRIP * (1 if held_out else 2))
            if opened is None:
                continue
            data, scale, found = opened
            name = str(path.relative_to(options.work / "unpacked" / package))
            for image, parts in cut_strips(Image.open(io.BytesIO(data)), scale, found["parts"]):
                windows.write(folder, number, image, parts, package=package, page=name)
                number += 1
            if page % 50 == 0:
                print(f"{page} pages, {number} strips", flush=True)
    finally:
        shown.close()


if __name__ == "__main__":
    main()
