"""Tables and forms."""

import style as styles


def table(page, x, y, width, bottom, rows=None):
    """Returns where it ends."""
    rng, style = page.rng, page.style
    font, bold = style.text(0.9), style.text(0.9, bold=True)
    step = round(page.line_height(font) * rng.uniform(1.0, 1.5))
    rows = min(rows or rng.randint(4, 14), int((bottom - y) / step))
    columns = rng.randint(3, max(3, min(8, width // (6 * style.size))))
    if rows < 3:
        return y
    rules = styles.variant(rng, style, ("all", "horizontal", "outer", "none"), ("zebra", "booktabs"))
    shares = [rng.uniform(0.6, 1.6) for _ in range(columns)]
    edges = [x]
    for share in shares:
        edges.append(edges[-1] + width * share / sum(shares))
    numeric = [column > 0 and rng.random() < 0.75 for column in range(columns)]
    end = y + rows * step
    shade = tuple(round(0.88 * v) for v in style.paper)
    for row in range(rows):
        top = y + row * step
        if (rules == "zebra" and row % 2) or (row == 0 and rules != "booktabs" and rng.random() < 0.5):
            page.draw.rectangle((x, top, x + width, top + step), fill=shade)
        for column in range(columns):
            left, right = edges[column] + style.size * 0.3, edges[column + 1] - style.size * 0.3
            number = numeric[column] and row > 0
            text = page.words.number() if number else page.words.label()
            used = bold if row == 0 else font
            while text and used.getlength(text) > right - left:
                text = text[:-1]
            at = right - used.getlength(text) if number else left
            page.draw.text((at, top + (step - used.size) / 2 - used.size * 0.12), text, font=used,
                           fill=style.ink)
    _rules(page, rules, edges, y, step, rows)
    page.add("table", (x, y, x + width, end))
    return end + round(style.size * 0.8)


def _rules(page, rules, edges, y, step, rows):
    draw, ink, end = page.draw, page.style.ink, y + rows * step
    if rules in ("all", "outer"):
        draw.rectangle((edges[0], y, edges[-1], end), outline=ink)
    if rules == "all":
        for edge in edges[1:-1]:
            draw.line((edge, y, edge, end), fill=ink)
    if rules in ("all", "horizontal"):
        for row in range(rows + 1):
            draw.line((edges[0], y + row * step, edges[-1], y + row * step), fill=ink)
    if rules == "booktabs":
        for row, thick in ((0, 2), (1, 1), (rows, 2)):
            draw.line((edges[0], y + row * step, edges[-1], y + row * step), fill=ink, width=thick)


def form(page, box):
    """Fields to fill in, some of them filled, down to the bottom of the box."""
    rng, style = page.rng, page.style
    x0, y, x1, bottom = box
    font = style.text(rng.uniform(0.8, 1.0))
    kind = styles.variant(rng, style, ("boxes", "lines", "grid"), ("combs", "dots"))
    step = round(font.size * rng.uniform(2.2, 3.4))
    while y + step < bottom:
        if rng.random() < 0.12:
            page.draw.text((x0, y + step * 0.2), page.words.title(2, 4), font=style.heading(1.1),
                           fill=style.ink)
            page.draw.line((x0, y + step * 0.9, x1, y + step * 0.9), fill=style.accent, width=2)
        elif rng.random() < 0.2:
            _choices(page, x0, y, x1, step, font)
        else:
            fields = rng.choice((1, 1, 2, 2, 3))
            wide = (x1 - x0) / fields
            for i in range(fields):
                _field(page, kind, x0 + i * wide, y, wide * 0.94, step, font)
        y += step


def _choices(page, x0, y, x1, step, font):
    rng, ink, side = page.rng, page.style.ink, font.size * 0.8
    at, top = x0, y + step * 0.3
    for _ in range(rng.randint(2, 5)):
        label = page.words.label()
        if at + 2 * side + font.getlength(label) > x1:
            break
        page.draw.rectangle((at, top, at + side, top + side), outline=ink)
        if rng.random() < 0.4:
            page.draw.line((at, top, at + side, top + side), fill=ink, width=2)
            page.draw.line((at, top + side, at + side, top), fill=ink, width=2)
        page.draw.text((at + 1.5 * side, top), label, font=font, fill=ink)
        at += 3.5 * side + font.getlength(label)


def _field(page, kind, x, y, width, step, font):
    rng, draw, ink = page.rng, page.draw, page.style.ink
    label = page.words.label() + ("" if kind == "grid" else ":")
    length = min(font.getlength(label), width * 0.5)
    top, low = y + step * 0.15, y + step * 0.9
    left = x + length + font.size * 0.5
    if kind == "grid":  # The label in the corner of a cell.
        draw.rectangle((x, y, x + width / 0.94, y + step), outline=ink)
        draw.text((x + 2, y + 1), label, font=page.style.text(0.6), fill=ink)
        left = x + 4
    else:
        draw.text((x, low - font.size * 1.1), label[:int(len(label) * width * 0.5 / max(length, 1))],
                  font=font, fill=ink)
    if kind == "boxes":
        draw.rectangle((left, top, x + width, low), outline=ink)
    elif kind == "lines":
        draw.line((left, low, x + width, low), fill=ink)
    elif kind == "dots":
        draw.text((left, low - font.size), "." * int((x + width - left) / font.getlength(".")),
                  font=font, fill=ink)
    elif kind == "combs":
        cell = font.size * 1.1
        for i in range(int((x + width - left) / cell)):
            draw.rectangle((left + i * cell, low - cell, left + (i + 1) * cell, low), outline=ink)
    if rng.random() < 0.5:
        draw.text((left + 3, low - font.size * 1.15), page.words.number(), font=page.style.code(0.85),
                  fill=rng.choice((ink, (30, 40, 140))))
