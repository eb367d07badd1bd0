"""What the detector learns from: windows of rendered documents (../documents) and of drawn pages."""

import collections
import pathlib
import random
import sys

import numpy as np
from PIL import Image

import layouts

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[0] / "pages"), str(HERE.parents[0] / "documents")]

import scan  # noqa: E402
import windows  # noqa: E402

DRAWN = 0.2  # Share of the windows.
KEPT, AGAIN = 150, 0.7  # Drawn pages lately, and how often one of them is shown again.
RELIST = 200  # Windows until the strips are listed anew: they come while training runs.
WORN, SKEWED = 0.45, 0.08


class Samples:
    """For one process: strips of a folder of ../documents, or drawn pages alone (None)."""

    def __init__(self, folder):
        self.folder, self.count, self.strips = folder, 0, []
        self.drawn = collections.deque(maxlen=KEPT)

    def sample(self, seed, size):
        """Pixels [H, W, 3], labels, boxes of a window of (width, height)."""
        if self.folder and self.count % RELIST == 0:
            self.strips = windows.strips(self.folder)
        self.count += 1
        rng = random.Random(f"sample {seed}")
        if self.strips and rng.random() >= DRAWN:
            image, found = self._rendered(rng, size)
            image, found = worn(image, found, rng)
        else:
            image, found = self._drawn(rng, seed, size)
        return arrays(image, found)

    def _rendered(self, rng, size):
        path, about = rng.choice(self.strips)
        wide, high = size
        if about["width"] > max(size) and high > wide or about["width"] > wide and rng.random() < 0.5:
            return _shrunk((path, about), rng, size)
        top = rng.choice((0, rng.randint(0, max(0, about["height"] - high))))
        pixels, found = windows.window((path, about), top, (max(wide, about["width"]), high))
        left = rng.choice((0, pixels.shape[1] - wide))
        found = windows.cut([(label, *box) for label, box in found], left, 0, left + wide, high)
        return Image.fromarray(pixels[:, left:left + wide]), found

    def _drawn(self, rng, seed, size):
        if len(self.drawn) < 8 or rng.random() > AGAIN:
            self.drawn.append(layouts.draw(seed))
        image, found = rng.choice(self.drawn)
        wide, high = min(size[0], image.width), min(size[1], image.height)
        left, top = rng.randint(0, image.width - wide), rng.randint(0, image.height - high)
        found = windows.cut([(label, *box) for label, box in found], left, top, left + wide, top + high)
        paper = Image.new("RGB", size, (255, 255, 255))
        paper.paste(image.crop((left, top, left + wide, top + high)))
        return paper, found


def _shrunk(strip, rng, size):
    """A window of a strip that is wider, made smaller."""
    wide, high = size
    share = wide / strip[1]["width"]
    tall = round(high / share)
    top = rng.choice((0, rng.randint(0, max(0, strip[1]["height"] - tall))))
    pixels, found = windows.window(strip, top, (strip[1]["width"], tall))
    image = Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)
    return image, [(label, tuple(value * share for value in box)) for label, box in found]


def worn(image, found, rng):
    """A window as a scanner or a phone leaves it, now and then."""
    if rng.random() < SKEWED:
        degrees = rng.uniform(-1, 1)
        image = scan.skewed(image, degrees, (255, 255, 255))
        found = [(label, scan.turned(box, degrees, image.size)) for label, box in found]
    return (scan.worn(image, rng) if rng.random() < WORN else image), found


def arrays(image, found):
    """Pixels [H, W, 3], numbers of labels, boxes [n, 4]."""
    return (np.asarray(image), np.array([layouts.LABELS.index(label) for label, _ in found], dtype=np.int64),
            np.array([box for _, box in found], dtype=np.float32).reshape(-1, 4))


_mine = None


def begin(folder):
    """Of a process that samples."""
    global _mine
    _mine = Samples(folder)


def take(seed, size):
    return _mine.sample(seed, size)
