"""Charts and diagrams within a box."""

import math

import style as styles


def _colours(rng, count):
    if rng.random() < 0.3:
        return [(v, v, v) for v in (40, 160, 100, 200, 70, 130)[:count]]
    return [tuple(rng.randrange(20, 230) for _ in range(3)) for _ in range(count)]


def chart(page, box):
    kind = styles.variant(page.rng, page.style, ("bars", "lines", "pie", "sideways"),
                          ("scatter", "area"))
    if kind == "pie":
        _pie(page, box)
    else:
        _axes(page, box, kind)


def _pie(page, box):
    rng, draw = page.rng, page.draw
    x0, y0, x1, y1 = box
    parts = rng.randint(3, 6)
    colours, shares = _colours(rng, parts), [rng.uniform(0.3, 2) for _ in range(parts)]
    side = min(x1 - x0, y1 - y0) * 0.8
    left, top = x0 + side * 0.05, y0 + (y1 - y0 - side) / 2
    begin = rng.uniform(0, 360)
    for colour, share in zip(colours, shares):
        end = begin + 360 * share / sum(shares)
        draw.pieslice((left, top, left + side, top + side), begin, end, fill=colour,
                      outline=page.style.paper)
        begin = end
    _legend(page, colours, left + side * 1.1, top + side * 0.2, x1)


def _legend(page, colours, x, y, right):
    font = page.style.text(0.8)
    for i, colour in enumerate(colours):
        top = y + i * font.size * 1.5
        page.draw.rectangle((x, top, x + font.size, top + font.size * 0.8), fill=colour)
        label = page.words.label()
        while label and font.getlength(label) > right - x - 1.5 * font.size:
            label = label[:-1]
        page.draw.text((x + 1.5 * font.size, top), label, font=font, fill=page.style.ink)


def _axes(page, box, kind):
    rng, draw, ink = page.rng, page.draw, page.style.ink
    x0, y0, x1, y1 = box
    font = page.style.text(0.75)
    left, low, top, right = x0 + 4 * font.size, y1 - 2 * font.size, y0 + 2 * font.size, x1 - font.size
    if right - left < 40 or low - top < 40:
        return
    if rng.random() < 0.6:
        draw.text((left, y0), page.words.title(2, 5), font=page.style.text(0.9, bold=True), fill=ink)
    ticks = rng.randint(3, 7)
    for i in range(ticks + 1):
        y = low - (low - top) * i / ticks
        if rng.random() < 0.7 and kind != "sideways":
            draw.line((left, y, right, y), fill=tuple(round(0.85 * v) for v in page.style.paper))
        draw.text((x0, y - font.size / 2), str(i * rng.choice((5, 10, 20))), font=font, fill=ink)
    series = rng.randint(1, 4)
    colours = _colours(rng, series)
    points = rng.randint(4, 14)
    for s, colour in enumerate(colours):
        values = _values(rng, points)
        _series(draw, kind, values, s, series, colour, (left, top, right, low), rng)
    draw.line((left, low, right, low), fill=ink, width=2)
    draw.line((left, low, left, top), fill=ink, width=2)
    for i in range(min(points, 7)):
        at = left + (right - left) * (i + 0.3) / min(points, 7)
        draw.text((at, low + font.size * 0.4), str(1990 + i * 5), font=font, fill=ink)
    if series > 1 and rng.random() < 0.6:
        _legend(page, colours, right - (right - left) * 0.25, top, right)


def _values(rng, count):
    level, found = rng.uniform(0.2, 0.8), []
    for _ in range(count):
        level = min(0.98, max(0.04, level + rng.uniform(-0.25, 0.25)))
        found.append(level)
    return found


def _series(draw, kind, values, index, series, colour, box, rng):
    left, top, right, low = box
    wide, high = right - left, low - top
    count = len(values)
    if kind == "bars":
        slot = wide / count
        for i, value in enumerate(values):
            at = left + i * slot + slot * (0.1 + 0.8 * index / series)
            draw.rectangle((at, low - value * high, at + 0.8 * slot / series, low), fill=colour)
    elif kind == "sideways":
        slot = high / count
        for i, value in enumerate(values):
            at = top + i * slot + slot * (0.1 + 0.8 * index / series)
            draw.rectangle((left, at, left + value * wide, at + 0.8 * slot / series), fill=colour)
    elif kind == "scatter":
        centre = rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7)
        for _ in range(count * 8):
            x = left + wide * min(1, max(0, rng.gauss(centre[0], 0.15)))
            y = low - high * min(1, max(0, rng.gauss(centre[1], 0.15)))
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=colour)
    else:
        points = [(left + wide * i / (count - 1), low - value * high)
                  for i, value in enumerate(values)]
        if kind == "area":
            draw.polygon([*points, (right, low), (left, low)], fill=colour)
        draw.line(points, fill=colour, width=rng.randint(2, 4))
        if kind == "lines" and rng.random() < 0.5:
            for x, y in points:
                draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour)


def diagram(page, box):
    """Labelled shapes and the arrows between them."""
    rng = page.rng
    kind = styles.variant(rng, page.style, ("layers", "tree", "flow"), ("states", "ring"))
    x0, y0, x1, y1 = box
    places = []
    if kind == "ring":
        count = rng.randint(4, 8)
        for i in range(count):
            turn = 2 * math.pi * i / count
            places.append(((x0 + x1) / 2 + 0.38 * (x1 - x0) * math.cos(turn),
                           (y0 + y1) / 2 + 0.38 * (y1 - y0) * math.sin(turn)))
        links = [(i, (i + 1) % count) for i in range(count)]
    else:
        rows = rng.randint(2, 5)
        widths = [2 ** row if kind == "tree" else rng.randint(1, 4) for row in range(rows)]
        widths = [min(w, 5) for w in widths]
        for row, wide in enumerate(widths):
            for i in range(wide):
                places.append((x0 + (x1 - x0) * (i + 0.5) / wide, y0 + (y1 - y0) * (row + 0.5) / rows))
        firsts = [sum(widths[:row]) for row in range(rows)]
        links = [(firsts[row] + min(i * widths[row] // widths[row + 1], widths[row] - 1),
                  firsts[row + 1] + i) for row in range(rows - 1) for i in range(widths[row + 1])]
    wide = min((x1 - x0) / 5.5, 12 * page.style.size)
    high = max(2.2 * page.style.size, min((y1 - y0) / 8, wide * 0.6))
    _links(page, links, places, high)
    for place in places:
        _node(page, "circle" if kind == "states" else rng.choice(("box", "box", "round", "rhomb")),
              place, wide * rng.uniform(0.75, 1), high)


def _links(page, links, places, high):
    rng, ink = page.rng, page.style.ink
    for a, b in links:
        (ax, ay), (bx, by) = places[a], places[b]
        page.draw.line((ax, ay, bx, by), fill=ink, width=rng.choice((1, 2)))
        length = math.hypot(bx - ax, by - ay) or 1
        ux, uy = (bx - ax) / length, (by - ay) / length
        tip = bx - ux * high * 0.6, by - uy * high * 0.6
        size = page.style.size * 0.6
        page.draw.polygon([tip, (tip[0] - size * (ux + uy * 0.5), tip[1] - size * (uy - ux * 0.5)),
                           (tip[0] - size * (ux - uy * 0.5), tip[1] - size * (uy + ux * 0.5))],
                          fill=ink)


def _node(page, shape, place, wide, high):
    rng, draw = page.rng, page.draw
    x, y = place
    box = (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
    light = tuple(rng.randrange(200, 256) for _ in range(3))
    look = {"fill": rng.choice((page.style.paper, light)), "outline": page.style.ink}
    if shape == "box":
        draw.rectangle(box, **look)
    elif shape == "round":
        draw.rounded_rectangle(box, radius=high / 3, **look)
    elif shape == "circle":
        draw.ellipse((x - high * 0.8, y - high * 0.8, x + high * 0.8, y + high * 0.8), **look)
    else:
        draw.polygon([(x, box[1]), (box[2], y), (x, box[3]), (box[0], y)], **look)
    font, label = page.style.text(0.75), page.words.label()
    while label and font.getlength(label) > wide * 0.9:
        label = label[:-1]
    draw.text((x - font.getlength(label) / 2, y - font.size * 0.6), label, font=font,
              fill=page.style.ink)
