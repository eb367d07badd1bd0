"""Strips of rendered pages on disk, and windows cut from them."""

import json

import numpy as np
from PIL import Image

LINES = ("title", "heading", "header", "footer", "caption", "formula")  # Small things: all or nothing.
LEAST = 12  # Pixels of a part that is still one.


def write(folder, number, image, parts, **about):
    """A strip with [[label, x0, y0, x1, y1]] in its pixels, as a JPEG and, last, a JSON of its name."""
    image.save(folder / f"{number:05}.jpg", "JPEG", quality=90)
    partial = folder / f"{number:05}.partial"
    partial.write_text(json.dumps({"width": image.width, "height": image.height, "parts": parts, **about}) + "\n")
    partial.rename(folder / f"{number:05}.json")


def strips(folder):
    """[(path of the picture, what `write` was told)] of the finished ones."""
    return [(path.with_suffix(".jpg"), json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))
            if path.name != "truth.json"]


def cut(parts, x0, y0, x1, y1):
    """The parts within a window, in its pixels: lines of which most is visible, and what is visible of others."""
    found = []
    for label, *box in parts:
        seen = [max(box[0], x0), max(box[1], y0), min(box[2], x1), min(box[3], y1)]
        wide, high = seen[2] - seen[0], seen[3] - seen[1]
        if wide < LEAST / 2 or high < LEAST / 2:
            continue
        share = wide * high / ((box[2] - box[0]) * (box[3] - box[1]))
        if share < 1 and (min(wide, high) < LEAST or label in LINES and share < 0.6):
            continue
        found.append((label, (seen[0] - x0, seen[1] - y0, seen[2] - x0, seen[3] - y0)))
    return found


def window(strip, top, size):
    """(pixels [H, W, 3], [(label, box)]) from row `top` of a strip on; white below its end."""
    path, about = strip
    wide, high = size
    with Image.open(path) as image:
        shown = image.convert("RGB").crop((0, top, min(wide, image.width), min(top + high, image.height)))
    pixels = np.full((high, wide, 3), 255, np.uint8)
    pixels[:shown.height, :shown.width] = np.asarray(shown)
    return pixels, cut(about["parts"], 0, top, shown.width, top + shown.height)
