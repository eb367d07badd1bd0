"""How pages are shown: width, zoom, and styles over their own."""

import dataclasses

SERIFS = ("DejaVu Serif", "Liberation Serif", "Linux Libertine O", "EB Garamond", "C059", "Nimbus Roman", "Caladea")
SANS = ("DejaVu Sans", "Liberation Sans", "Open Sans", "Roboto", "Lato", "Noto Sans", "Carlito", "Nimbus Sans")
MONO = ("DejaVu Sans Mono", "Liberation Mono", "Inconsolata", "Hack", "FreeMono", "Nimbus Mono PS")
SIDES = (".sphinxsidebar, .wy-nav-side, .sidebar-drawer, .toc-drawer, #side-nav, .md-sidebar, nav.sidebar, "
         ".bd-sidebar, aside { display: none !important } .bodywrapper, .wy-nav-content-wrap, #doc-content "
         "{ margin-left: 0 !important }")


@dataclasses.dataclass
class Look:
    width: int  # Of the page, in its own pixels.
    pixels: int  # Of the picture, in width.
    print: bool  # With the style for paper.
    css: str


def _light(rng, low=225):
    return f"rgb({rng.randint(low, 255)}, {rng.randint(low, 255)}, {rng.randint(low, 255)})"


def _type(rng):
    body = rng.choice(rng.choice((SERIFS, SANS)))
    head = body if rng.random() < 0.5 else rng.choice(rng.choice((SERIFS, SANS)))
    rules = [f"body, p, li, td, th, dd, dt {{ font-family: '{body}' !important }}",
             f"h1, h2, h3, h4, h5, h6 {{ font-family: '{head}' !important }}",
             f"pre, pre *, code, tt {{ font-family: '{rng.choice(MONO)}' !important }}"]
    if rng.random() < 0.6:
        rules.append(f"p, li, dd {{ line-height: {rng.uniform(1.15, 1.8):.2f} !important }}")
    if rng.random() < 0.4:
        rules.append(f"html {{ font-size: {rng.randint(85, 130)}% !important }}")
    if rng.random() < 0.25:
        rules.append("p, li, dd { text-align: justify }")
    return rules


def _paper(rng):
    rules = [f"html, body {{ background: {_light(rng, 240)} !important }}"] if rng.random() < 0.4 else []
    if rng.random() < 0.35:
        shade = _light(rng) if rng.random() < 0.7 else "transparent"
        border = f"{rng.choice((0, 1, 1, 2))}px solid {_light(rng, 150)}"
        rules.append(f"pre {{ background: {shade} !important; border: {border} !important; "
                     f"padding: {rng.randint(0, 14)}px !important }}")
    if rng.random() < 0.35:
        line = f"1px solid {_light(rng, 90)}"
        rules.append(rng.choice((
            f"table, td, th {{ border: {line} !important; border-collapse: collapse !important }}",
            f"table, td, th {{ border: 0 !important }} tr {{ border-bottom: {line} !important }}",
            f"th {{ background: {_light(rng, 190)} !important }} td, th {{ border: 0 !important }}",
            "td, th { border: 0 !important; padding: 4px 10px !important }")))
    if rng.random() < 0.25:
        rules.append(f"h1, h2, h3 {{ text-align: {rng.choice(('left', 'center'))}; "
                     f"font-weight: {rng.choice((400, 600, 700))} !important }}")
    if rng.random() < 0.2:
        rules.append(f"h2 {{ border-bottom: {rng.randint(1, 3)}px solid {_light(rng, 100)} }}")
    return rules


def draw(rng, plain=False):
    """A look; `plain` ones leave the page's own style."""
    wide = rng.random() < 0.2
    width = rng.randint(900, 1500) if wide else round(rng.triangular(620, 1250, 900))
    rules = []
    if not plain:
        if rng.random() < 0.55:
            rules += _type(rng)
        rules += _paper(rng)
        if rng.random() < 0.3:
            rules.append(SIDES)
        if rng.random() < 0.3:
            rules.append(f"body {{ padding: 0 {rng.randint(0, 110)}px !important }}")
        if rng.random() < 0.05:
            rules.append("body { column-count: 2; column-gap: 2.5em }")
    return Look(width, 1280 if wide else 1024, rng.random() < 0.15, "\n".join(rules))
