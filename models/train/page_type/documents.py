"""Pictures of text, tables and code cut from the rendered documents of ../documents: what fills a window names it."""

import collections
import pathlib
import random
import sys

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[0] / "pages"), str(HERE.parents[0] / "documents")]

import scan  # noqa: E402
import windows  # noqa: E402

KINDS = {"paragraph": "text", "heading": "text", "list": "text", "title": "text", "caption": "text",
         "table": "table", "code": "code"}
LABELS = ("code", "table", "text")
MOST = 0.62  # Share of what is covered that names a window,
LEAST = {"code": 0.22, "table": 0.25, "text": 0.15}  # and of the window.
_TRIES = 40


def label_of(found, size):
    """The label of a window with those parts [(label, box)], or None where nothing fills it."""
    areas = collections.Counter()
    for label, (x0, y0, x1, y1) in found:
        areas[KINDS.get(label, label)] += (x1 - x0) * (y1 - y0)
    if not areas:
        return None
    label, area = areas.most_common(1)[0]
    if label not in LABELS or area < MOST * sum(areas.values()) or area < LEAST[label] * size[0] * size[1]:
        return None
    return label


def _window(strip, rng, label):
    """A window's corners, of a page's width or somewhat less; around a part of that kind, if there is one."""
    about = strip[1]
    wide = round(about["width"] * (1 if rng.random() < 0.6 else rng.uniform(0.6, 1)))
    high = min(round(wide * rng.uniform(0.7, 1.42)), about["height"])
    parts = [part for part in about["parts"] if KINDS.get(part[0]) == label]
    if not parts:
        return None
    _, x0, y0, x1, y1 = rng.choice(parts)
    left = round(min(max(0, (x0 + x1 - wide) / 2), about["width"] - wide))
    top = round(min(max(0, rng.uniform(y0 - 0.3 * high, max(y0, y1 - 0.7 * high))), about["height"] - high))
    return left, top, left + wide, top + high


def picture(strips, label, rng, wear=True):
    """A window of that label, or None if none was found soon."""
    for _ in range(_TRIES):
        strip = rng.choice(strips)
        corners = _window(strip, rng, label)
        if corners is None:
            continue
        found = windows.cut(strip[1]["parts"], *corners)
        if label_of(found, (corners[2] - corners[0], corners[3] - corners[1])) != label:
            continue
        with Image.open(strip[0]) as image:
            cut = image.convert("RGB").crop(corners)
        if wear and rng.random() < 0.3:
            cut = scan.skewed(cut, rng.uniform(-3, 3), (255, 255, 255))
        return scan.worn(cut, rng) if wear and rng.random() < 0.6 else cut
    return None


def pictures(folder, count, wear=True):
    """`count` of (label, picture), every label in turn."""
    strips = windows.strips(folder)
    holding = {label: [strip for strip in strips if any(KINDS.get(part[0]) == label for part in strip[1]["parts"])]
               for label in LABELS}
    for number in range(count):
        label = LABELS[number % len(LABELS)]
        found = picture(holding[label], label, random.Random(f"document {number}"), wear)
        if found is not None:
            yield label, found
