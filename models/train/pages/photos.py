"""Pictures with the statistics of photographs, made of noise: no photograph is needed to train, and
real ones are left to test on."""

import numpy as np
from PIL import Image, ImageFilter

import style as styles


def _noise(generator, high, wide, falloff):
    """Fractal noise [high, wide] in 0..1: spectrum 1 / f^falloff."""
    rows = np.fft.fftfreq(high)[:, None] * high
    columns = np.fft.rfftfreq(wide)[None] * wide
    distance = np.sqrt(rows ** 2 + columns ** 2)
    distance[0, 0] = 1
    phases = np.exp(2j * np.pi * generator.random(distance.shape))
    field = np.fft.irfft2(phases * distance ** -falloff, s=(high, wide))
    low, top = np.percentile(field, (1, 99))
    return np.clip((field - low) / (top - low + 1e-9), 0, 1)


def _tint(generator, field):
    """[h, w] to colours between three anchors."""
    anchors = generator.uniform(0, 255, (3, 3))
    anchors[0] *= 0.4
    anchors[2] = anchors[2] * 0.6 + 100
    flat = [np.interp(field, (0, 0.5, 1), anchors[:, channel]) for channel in range(3)]
    return np.stack(flat, -1)


def _landscape(generator, high, wide):
    sky = np.linspace(0, 1, high)[:, None] * np.ones((1, wide)) * 0.6
    image = _tint(generator, np.clip(sky + 0.4 * _noise(generator, high, wide, 1.8), 0, 1))
    level = generator.uniform(0.3, 0.6)
    for _ in range(generator.integers(2, 5)):
        ridge = _noise(generator, 4, wide, generator.uniform(1.2, 2.0))[0]
        edge = high * (level + 0.25 * (ridge - 0.5))
        ground = _tint(generator, _noise(generator, high, wide, generator.uniform(0.9, 1.6)))
        below = np.arange(high)[:, None] > edge[None]
        image = np.where(below[..., None], ground * generator.uniform(0.4, 1), image)
        level += generator.uniform(0.1, 0.25)
    return image


def _things(generator, high, wide):
    """Blurred background, lit things before it."""
    image = _tint(generator, _noise(generator, high, wide, 2.2))
    y, x = np.mgrid[:high, :wide]
    for _ in range(generator.integers(2, 9)):
        cy, cx = generator.uniform(0, high), generator.uniform(0, wide)
        ry, rx = generator.uniform(0.06, 0.35, 2) * min(high, wide)
        away = ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2
        inside = away < 1
        lit = np.sqrt(np.clip(1 - away, 0, 1)) * (0.6 + 0.4 * (cx - x + cy - y) / (rx + ry))
        colour = generator.uniform(40, 255, 3) * np.clip(lit, 0, 1)[..., None]
        grain = 1 - 0.3 * _noise(generator, high, wide, 1.2)[..., None]
        image = np.where(inside[..., None], colour * grain, image)
    return image


def _texture(generator, high, wide):
    image = _tint(generator, _noise(generator, high, wide, generator.uniform(0.7, 1.6)))
    light = _noise(generator, high, wide, 2.6)
    return image * (0.4 + 0.6 * light[..., None])


def _interior(generator, high, wide):
    """Planes with their own light and grain: walls, floors, facades."""
    image = _tint(generator, _noise(generator, high, wide, 2.4))
    y, x = np.mgrid[:high, :wide]
    for _ in range(generator.integers(3, 8)):
        turn = generator.uniform(0, 2 * np.pi)
        side = (x - generator.uniform(0, wide)) * np.cos(turn) + (
            y - generator.uniform(0, high)) * np.sin(turn)
        band = (side > 0) & (side < generator.uniform(0.1, 0.6) * wide)
        plane = generator.uniform(20, 230, 3) * (0.5 + 0.5 * _noise(generator, high, wide, 1.5))[..., None]
        image = np.where(band[..., None], plane, image)
    return image


_KINDS = {"landscape": _landscape, "things": _things, "texture": _texture, "interior": _interior}


def photo(rng, style, size):
    """An RGB image of `size` (width, height)."""
    generator = np.random.default_rng(rng.getrandbits(32))
    kind = styles.variant(rng, style, ("landscape", "things", "texture"), ("interior",))
    wide, high = size[0] // 2 + 1, size[1] // 2 + 1
    values = _KINDS[kind](generator, high, wide)
    values = np.clip(values + generator.normal(0, generator.uniform(0, 6), values.shape), 0, 255)
    image = Image.fromarray(values.astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)
    if rng.random() < 0.2:
        image = image.convert("L").convert("RGB")
    return image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.2)))
