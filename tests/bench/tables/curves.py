"""Lines over a logarithmic axis as plain SVG, for light and dark pages."""

import dataclasses
import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 150, 52, 74
COLOURS = (("#0969da", "#4493f8"), ("#bc4c00", "#f0883e"), ("#1a7f37", "#3fb950"), ("#8250df", "#ab7df8"),
           ("#bf3989", "#db61a2"), ("#57606a", "#9198a1"))  # On light and on dark ground.
STYLE = """
 .card{fill:#fff;stroke:#d0d7de} text{font:14px system-ui,sans-serif;fill:#1f2328} .grid{stroke:#d0d7de}
 .head{font-weight:600} .note{font-size:12px;fill:#59636e} .line{fill:none;stroke-width:2}
 .thought{stroke-dasharray:5 4} .dot{stroke:none} .end{text-anchor:end} .middle{text-anchor:middle}
"""
DARK = """.card{fill:#0d1117;stroke:#3d444d} text{fill:#f0f6fc} .note{fill:#9198a1} .grid{stroke:#3d444d}"""


@dataclasses.dataclass
class Curve:
    """A named line through (x, y), both above 0; `thought`: computed, not measured, and drawn dashed."""
    name: str
    points: list
    thought: bool = False


def short(value):
    """A number with at most three digits: 131072 is 128K, 0.05 is 0.05."""
    if value >= 1024 and value % 1024 == 0:
        return f"{value // 1024:.0f}K"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{value:.3g}"


class Axis:
    """Takes values of a logarithmic (or, from 0 on, linear) axis to pixels."""

    def __init__(self, values, start, end, logarithmic=True):
        self.logarithmic = logarithmic
        self.low, self.high = (min(values) if logarithmic else 0), max(values)
        if self.high <= self.low:
            self.high = self.low * 2 or 1
        self.start, self.end = start, end

    def at(self, value):
        low, high = self.low, self.high
        part = math.log(value / low) / math.log(high / low) if self.logarithmic else (value - low) / (high - low)
        return self.start + part * (self.end - self.start)

    def marks(self):
        if not self.logarithmic:
            step = 10 ** math.floor(math.log10(self.high))
            step /= 1 if self.high / step >= 4 else 2 if self.high / step >= 2 else 5
            return [step * i for i in range(int(self.high / step) + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        factors = (1,) if last - first > 3 else (1, 2, 5)
        found = [f * 10.0 ** power for power in range(first, last + 1) for f in factors]
        return [value for value in found if self.low <= value <= self.high]


def apart(places, least=16):
    """Moves the labels at these heights so that no two overlap; their order stays."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, after in zip(order, order[1:]):
        moved[after] = max(moved[after], moved[before] + least)
    over = max(moved, default=0) - (HEIGHT - BOTTOM)
    return [place - max(over, 0) for place in moved]


def colours():
    light = "".join(f".c{i}{{stroke:{c};fill:{c}}}" for i, (c, _) in enumerate(COLOURS))
    dark = "".join(f".c{i}{{stroke:{c};fill:{c}}}" for i, (_, c) in enumerate(COLOURS))
    return f"{light}\n .line{{fill:none}} .dot{{stroke:none}}\n @media (prefers-color-scheme:dark){{{DARK}{dark}\n  " \
           ".line{fill:none} .dot{stroke:none}}\n"


def text(x, y, kind, words):
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{html.escape(words)}</text>'


def grid(x_axis, y_axis, xs):
    for value in y_axis.marks():
        y = y_axis.at(value)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield text(LEFT - 8, y + 4, "note end", short(value))
    for value in xs:
        yield text(x_axis.at(value), HEIGHT - BOTTOM + 20, "note middle", short(value))


def draw(title, curves, x_name, y_name, note="", logarithmic=True):
    """The picture; `title` is also what it says to those who do not see it, `note` stands at its foot.
    `logarithmic` is of the upright axis, which else begins at 0."""
    curves = [curve for curve in curves if curve.points]
    xs = sorted({x for curve in curves for x, _ in curve.points})
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = Axis([y for curve in curves for _, y in curve.points], HEIGHT - BOTTOM, TOP + 18, logarithmic)
    lines = [text(16, 30, "head", title), text(16, TOP, "note", y_name), *grid(x_axis, y_axis, xs)]
    ends = apart([y_axis.at(curve.points[-1][1]) for curve in curves])
    for i, (curve, end) in enumerate(zip(curves, ends)):
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in curve.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        colour = f"c{i % len(COLOURS)}"
        lines.append(f'<path class="line {colour}{" thought" if curve.thought else ""}" d="M{path}"/>')
        if not curve.thought:
            lines += [f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
        lines.append(f'<circle class="dot {colour}" cx="{WIDTH - RIGHT + 14}" cy="{end:.1f}" r="4"/>')
        lines.append(text(WIDTH - RIGHT + 24, end + 5, "", curve.name))
    lines.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, "note middle", x_name))
    lines.append(text(16, HEIGHT - 14, "note", note))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">\n'
            f"<title>{html.escape(title)}</title>\n<style>{STYLE}{colours()}</style>\n"
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6"/>\n'
            + "\n".join(lines) + "\n</svg>\n")
