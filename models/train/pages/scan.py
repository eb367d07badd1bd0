"""The marks of printing, scanning and photographing on a page."""

import io
import math

import numpy as np
from PIL import Image, ImageFilter


def skewed(image, degrees, paper):
    return image.rotate(degrees, Image.Resampling.BILINEAR, fillcolor=paper)


def turned(box, degrees, size):
    """The upright box, in whole pixels, around what `skewed` makes of a box on an image of that size."""
    turn, middle = math.radians(degrees), (size[0] / 2, size[1] / 2)
    x, y = np.array(box).reshape(2, 2).T - np.array(middle)[:, None]
    xs = middle[0] + math.cos(turn) * x[:, None] + math.sin(turn) * y[None]
    ys = middle[1] - math.sin(turn) * x[:, None] + math.cos(turn) * y[None]
    return (max(0, math.floor(xs.min())), max(0, math.floor(ys.min())),
            min(size[0], math.ceil(xs.max())), min(size[1], math.ceil(ys.max())))


def worn(image, rng):
    """Noise, blur, light, JPEG: each now and then. Boxes stay where they are."""
    if rng.random() < 0.35:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.1)))
    values = np.asarray(image, dtype=np.float32)
    generator = np.random.default_rng(rng.getrandbits(32))
    high, wide = values.shape[:2]
    if rng.random() < 0.4:  # Light from a side.
        ramp = np.linspace(rng.uniform(0.75, 1), 1, wide)[None, :, None]
        values = values * (ramp if rng.random() < 0.5 else ramp[:, ::-1])
    if rng.random() < 0.4:
        values = values + generator.normal(0, rng.uniform(2, 12), (high, wide, 1))
    if rng.random() < 0.5:  # Contrast and brightness.
        values = (values - 128) * rng.uniform(0.7, 1.1) + 128 + rng.uniform(-15, 10)
    image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    if rng.random() < 0.25:
        image = image.convert("L").convert("RGB")
    if rng.random() < 0.4:
        packed = io.BytesIO()
        image.save(packed, "JPEG", quality=rng.randint(35, 90))
        image = Image.open(packed).convert("RGB")
    return image
