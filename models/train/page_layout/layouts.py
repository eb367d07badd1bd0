"""Whole pages with the boxes of what is on them: articles, reports, letters, in columns."""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import blocks  # noqa: E402
import figures  # noqa: E402
import page as pages  # noqa: E402
import photos  # noqa: E402
import scan  # noqa: E402
import style as styles  # noqa: E402
import tables  # noqa: E402

LABELS = ("caption", "code", "figure", "footer", "formula", "header", "heading", "list", "paragraph", "table",
          "title")
SIZE = (1024, 1280)  # Width and height: whole chunks of every stage.


def _edges(page, x0, x1):
    """Header and footer; returns the body's top and bottom."""
    rng, high, font = page.rng, page.size[1], page.style.text(0.8)
    step = page.line_height(font)
    top, bottom = round(high * rng.uniform(0.04, 0.07)), round(high * rng.uniform(0.93, 0.97))
    for label, y, present in (("header", top, rng.random() < 0.6),
                              ("footer", bottom - step, rng.random() < 0.7)):
        if not present:
            continue
        text = page.words.title(2, 6) if rng.random() < 0.7 else str(rng.randint(1, 300))
        length = font.getlength(text)
        at = rng.choice((x0, x0 + (x1 - x0 - length) / 2, x1 - length))
        page.draw.text((at, y), text, font=font, fill=page.style.ink)
        box = [at, y, at + length, y + step]
        if rng.random() < 0.3:  # A second entry on the other side: one box over both.
            page.draw.text((x0 if at > x0 else x1 - 40, y), str(rng.randint(1, 300)), font=font,
                           fill=page.style.ink)
            box = [x0, y, x1, y + step]
        if rng.random() < 0.3:
            line = box[3] + 2 if label == "header" else box[1] - 2
            page.draw.line((x0, line, x1, line), fill=page.style.ink)
        page.add(label, tuple(round(v) for v in box))
    gap = 2 * page.style.size
    return top + step + gap, bottom - step - gap


def _figure(page, x, y, width, bottom):
    rng = page.rng
    high = round(width * rng.uniform(0.4, 0.9))
    if y + high + 3 * page.style.size > bottom:
        return y
    box = (x, y, x + width, y + high)
    kind = rng.choice(("chart", "diagram", "photo"))
    if kind == "photo":
        page.image.paste(photos.photo(rng, page.style, (width, high)), (x, y))
    else:
        (figures.chart if kind == "chart" else figures.diagram)(page, box)
    page.add("figure", box)
    return _caption(page, x, y + high + page.style.size // 2, width, bottom)


def _caption(page, x, y, width, bottom):
    return blocks.caption(page, x, y, width, bottom) if page.rng.random() < 0.8 else y


def _table(page, x, y, width, bottom):
    end = tables.table(page, x, y, width, bottom)
    return _caption(page, x, end, width, bottom) if end > y else y


_BLOCKS = ((blocks.paragraph, 10), (blocks.heading, 2.5), (blocks.bullets, 2), (blocks.formula, 1.5),
           (_figure, 1.5), (_table, 1.5), (blocks.listing, 1.5))


def _column(page, x, y, width, bottom):
    while y < bottom - 2 * page.style.size:
        block = page.rng.choices([b for b, _ in _BLOCKS], [weight for _, weight in _BLOCKS])[0]
        y = max(block(page, x, y, width, bottom), y + 4)
        if page.rng.random() < 0.04:  # White space at the end of a part.
            y += page.rng.randint(20, 200)


def draw(seed, held_out=False, size=SIZE):
    """(image, [(label, box)]); the same for the same arguments on a machine with the same fonts."""
    rng = random.Random(f"layout {seed} {held_out}")
    page = pages.Page(size, rng, styles.draw(rng, SIZE[0] * 3 // 4, held_out))
    margin = round(size[0] * rng.uniform(0.06, 0.13))
    x0, x1 = margin, size[0] - margin
    y, bottom = _edges(page, x0, x1)
    if rng.random() < 0.55:
        y = blocks.title(page, x0, y, x1 - x0, bottom)
    if rng.random() < 0.2:
        y = _figure(page, x0, y, x1 - x0, bottom)
    columns = min(styles.variant(rng, page.style, (1, 1, 2, 2), (1, 2, 3)), size[0] // 250)
    gap = round(page.style.size * rng.uniform(1.2, 2.2))
    width = (x1 - x0 - gap * (columns - 1)) // columns
    for column in range(columns):
        _column(page, x0 + column * (width + gap), y, width, bottom)
    image, found = page.image, page.found
    if rng.random() < 0.25:
        degrees = rng.uniform(-1, 1)
        image = scan.skewed(image, degrees, page.style.paper)
        found = [(label, scan.turned(box, degrees, size)) for label, box in found]
    return scan.worn(image, rng), found
