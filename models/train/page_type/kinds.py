"""A drawing per label: pages and pictures of which a classifier names the kind. Most hold a little of
something else too, as real ones do: the label is what fills them."""

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

LABELS = ("chart", "code", "diagram", "form", "photo", "table", "text")


def _frame(page):
    wide, high = page.size
    margin = page.rng.uniform(0.04, 0.13)
    return [round(v) for v in (wide * margin, high * margin, wide * (1 - margin), high * (1 - margin))]


def text(page):
    rng = page.rng
    x0, y, x1, bottom = _frame(page)
    if rng.random() < 0.5:
        y = blocks.title(page, x0, y, x1 - x0, bottom)
    columns = styles.variant(rng, page.style, (1, 1, 2), (1, 2, 3))
    gap = round(page.style.size * 1.5)
    wide = (x1 - x0 - gap * (columns - 1)) // columns
    for column in range(columns):
        at, left = y, x0 + column * (wide + gap)
        while at < bottom - page.style.size * 2:
            block = rng.choices((blocks.paragraph, blocks.heading, blocks.bullets, blocks.formula),
                                (8, 1.5, 1, 0.5))[0]
            end = block(page, left, at, wide, bottom)
            at = max(end, at + 2)


def table(page):
    x0, y, x1, bottom = _frame(page)
    if page.rng.random() < 0.5:
        y = blocks.heading(page, x0, y, x1 - x0, bottom)
    if page.rng.random() < 0.3:
        y = blocks.paragraph(page, x0, y, x1 - x0, bottom, 25)
    while y < bottom - 6 * page.style.size:
        end = tables.table(page, x0, y, x1 - x0, bottom, page.rng.randint(8, 45))
        y = max(end, y + 4)
        if page.rng.random() < 0.4:
            y = blocks.caption(page, x0, y, x1 - x0, bottom)


def form(page):
    x0, y, x1, bottom = _frame(page)
    if page.rng.random() < 0.7:
        y = blocks.title(page, x0, y, x1 - x0, bottom)
    if page.rng.random() < 0.3:
        y = blocks.paragraph(page, x0, y, x1 - x0, bottom, 20)
    tables.form(page, (x0, y, x1, bottom))


def _drawing(page, draw):
    x0, y0, x1, y1 = _frame(page)
    if page.rng.random() < 0.25:
        y0 = blocks.heading(page, x0, y0, x1 - x0, y1)
    if page.rng.random() < 0.25:
        caption = y1 - 4 * page.style.size
        blocks.caption(page, x0, caption, x1 - x0, y1)
        y1 = caption - page.style.size
    draw(page, (x0, y0, x1, y1))


def chart(page):
    _drawing(page, figures.chart)


def diagram(page):
    _drawing(page, figures.diagram)


def photo(page):
    page.image = photos.photo(page.rng, page.style, page.size)


THEMES = (  # Paper, ink, keyword, string, comment.
    (None, None, None, None, None),
    ((255, 255, 255), (20, 20, 20), (0, 0, 200), (160, 20, 20), (0, 128, 0)),
    ((30, 30, 30), (212, 212, 212), (86, 156, 214), (206, 145, 120), (106, 153, 85)),
    ((40, 42, 54), (248, 248, 242), (255, 121, 198), (241, 250, 140), (98, 114, 164)),
)
HELD_OUT_THEMES = (
    ((253, 246, 227), (101, 123, 131), (133, 153, 0), (42, 161, 152), (147, 161, 161)),
    ((0, 43, 54), (131, 148, 150), (133, 153, 0), (42, 161, 152), (88, 110, 117)),
)


def code(page):
    paper, *colours = styles.variant(page.rng, page.style, THEMES, HELD_OUT_THEMES)
    if paper is not None:
        page.draw.rectangle((0, 0, *page.size), fill=paper)
    x0, y0, x1, y1 = _frame(page)
    blocks.code(page, (x0, y0, x1, y1), page.rng.random() < 0.4, colours if paper else None)


def _size(rng, label):
    """Width and height in pixels."""
    long = rng.randint(420, 640)
    if label in ("chart", "diagram", "photo", "code"):
        ratio = rng.uniform(0.55, 1.3)
    else:
        ratio = rng.uniform(0.68, 0.8) if rng.random() < 0.8 else rng.uniform(1.2, 1.45)
    return (round(long * min(ratio, 1)), round(long / max(ratio, 1)))


def draw(label, seed, held_out=False):
    """A picture of that kind; the same for the same arguments on a machine with the same fonts."""
    rng = random.Random(f"{label} {seed} {held_out}")
    size = _size(rng, label)
    page = pages.Page(size, rng, styles.draw(rng, size[0], held_out))
    globals()[label](page)
    image = page.image
    if label != "photo" and rng.random() < 0.35:
        image = scan.skewed(image, rng.uniform(-4, 4), page.style.paper)
    return scan.worn(image, rng)
