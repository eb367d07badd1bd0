"""How a page looks: fonts, colours, margins. Fonts and variants of drawings are split in two: what
training sees, and what only tests see (`Style.held_out`)."""

import dataclasses
import functools
import subprocess

from PIL import ImageFont

# (for training, held out) by kind; a family that is not installed is passed over.
FAMILIES = {
    "serif": (("Liberation Serif", "DejaVu Serif", "Linux Libertine O"),
              ("FreeSerif", "EB Garamond")),
    "sans": (("DejaVu Sans", "Liberation Sans", "Open Sans", "Roboto"), ("FreeSans", "Lato")),
    "mono": (("DejaVu Sans Mono", "Liberation Mono", "Inconsolata"), ("FreeMono", "Hack")),
}
_UPRIGHT = ("Regular", "Book", "Roman", "Medium", "12 Regular")
_BOLD = ("Bold", "Semibold", "SemiBold", "12 Bold")


@functools.cache
def installed():
    """{(family, style): file}"""
    listed = subprocess.run(["fc-list", "--format", "%{family[0]}|%{style[0]}|%{file}\n"],
                            capture_output=True, text=True, check=True).stdout
    return {tuple(line.split("|")[:2]): line.split("|")[2] for line in sorted(listed.splitlines())
            if line.count("|") == 2}


@functools.cache
def families(kind, held_out):
    """[(upright file, bold file)]"""
    files, found = installed(), []
    for family in FAMILIES[kind][held_out]:
        upright = [files[family, s] for s in _UPRIGHT if (family, s) in files]
        bold = [files[family, s] for s in _BOLD if (family, s) in files]
        if upright:
            found.append((upright[0], (bold or upright)[0]))
    if not found:
        raise SystemExit(f"none of these fonts is installed: {', '.join(FAMILIES[kind][held_out])}")
    return found


@functools.cache
def font(path, size):
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


@dataclasses.dataclass
class Style:
    held_out: bool
    body: tuple  # (upright file, bold file)
    head: tuple
    mono: tuple
    size: int  # Pixels, of body text.
    leading: float  # Height of a line, in sizes.
    paper: tuple
    ink: tuple
    accent: tuple
    justified: bool

    def text(self, scale=1.0, bold=False):
        return font(self.body[bold], max(6, round(self.size * scale)))

    def heading(self, scale=1.0, bold=True):
        return font(self.head[bold], max(6, round(self.size * scale)))

    def code(self, scale=1.0):
        return font(self.mono[0], max(6, round(self.size * scale)))


def draw(rng, page_width, held_out=False):
    """A style for pages of that width in pixels."""
    body = rng.choice(families(rng.choice(("serif", "serif", "sans")), held_out))
    head = body if rng.random() < 0.5 else rng.choice(families("sans", held_out))
    dark = rng.randrange(0, 70)
    warm = rng.randrange(0, 18)
    white = rng.randrange(232, 256)
    return Style(
        held_out=held_out, body=body, head=head, mono=rng.choice(families("mono", held_out)),
        size=round(page_width * rng.uniform(0.016, 0.03)), leading=rng.uniform(1.15, 1.6),
        paper=(white, white - warm // 3, white - warm), ink=(dark, dark, dark + rng.randrange(12)),
        accent=tuple(rng.randrange(20, 200) for _ in range(3)), justified=rng.random() < 0.6)


def variant(rng, style, trained, held_out):
    """One of the forms of something: those in `held_out` appear in held-out styles only."""
    return rng.choice(held_out if style.held_out else trained)
