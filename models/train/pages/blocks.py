"""Blocks of pages made of text. Each draws from `y` down within a column and returns where it ends;
what is drawn is added to the page's boxes."""


def _gap(page, scale=0.6):
    return round(page.style.size * scale)


def paragraph(page, x, y, width, bottom, words=None):
    rng, style = page.rng, page.style
    text = page.words.run(words or rng.randint(15, 110))
    font = style.text()
    right, end = page.set_text(text, x, y, width, font, justify=style.justified, bottom=bottom)
    if end > y:
        page.add("paragraph", (x, y, max(right, x + 4), end))
    return end + _gap(page, rng.uniform(0.2, 1.0))


def title(page, x, y, width, bottom):
    rng, style = page.rng, page.style
    font = style.heading(rng.uniform(1.7, 2.8))
    text = page.words.title(2, 9).split()
    centred = rng.random() < 0.5
    lines = page.wrapped(text, font, width)
    step, left, right, top = page.line_height(font), x + width, x, y
    for line in lines:
        if y + step > bottom:
            break
        length = font.getlength(" ".join(line))
        at = x + (width - length) / 2 if centred else x
        page.set_line(line, at, y, font, width, False, style.ink)
        left, right, y = min(left, at), max(right, at + length), y + step
    if y > top:
        page.add("title", (round(left), top, round(right), y))
    return y + _gap(page, 1.2)


def heading(page, x, y, width, bottom):
    rng, style = page.rng, page.style
    font = style.heading(rng.uniform(1.05, 1.5))
    text = page.words.title(1, 6)
    if rng.random() < 0.5:
        text = f"{rng.randint(1, 9)}.{rng.randint(1, 9)} {text}"
    fill = style.accent if rng.random() < 0.25 else style.ink
    right, end = page.set_text(text.split(), x, y, width, font, fill, bottom=bottom)
    if end > y:
        page.add("heading", (x, y, right, end))
    return end + _gap(page, 0.4)


def bullets(page, x, y, width, bottom):
    rng, style = page.rng, page.style
    font, top, right = style.text(), y, x
    mark = rng.choice(("•", "-", "*", "1", "a"))
    indent = round(style.size * rng.uniform(1.2, 2.2))
    for number in range(rng.randint(3, 8)):
        if y + page.line_height(font) > bottom:
            break
        shown = {"1": f"{number + 1}.", "a": f"{chr(97 + number)})"}.get(mark, mark)
        page.draw.text((x, y), shown, font=font, fill=style.ink)
        end, y = page.set_text(page.words.run(rng.randint(3, 22)), x + indent, y, width - indent, font,
                               bottom=bottom)
        right, y = max(right, end), y + _gap(page, 0.15)
    if y > top:
        page.add("list", (x, top, right, y))
    return y + _gap(page)


def formula(page, x, y, width, bottom):
    rng, style = page.rng, page.style
    font = style.text(rng.uniform(1.0, 1.4))
    signs = ["+", "−", "=", "≤", "·", "∑", "∫", "∂", "→", "∞"]
    names = list("abcdxyzijknαβγλμσθφ")
    terms = []
    for _ in range(rng.randint(3, 9)):
        terms += [rng.choice(names) + rng.choice(["", "", "²", "³", "(x)"]), rng.choice(signs)]
    text = " ".join(terms[:-1])
    length = font.getlength(text)
    if y + 2 * page.line_height(font) > bottom or length > width:
        return y
    top, y = y, y + _gap(page, 0.6)
    at = x + (width - length) / 2
    page.draw.text((at, y), text, font=font, fill=style.ink)
    end = y + page.line_height(font)
    left, right = at, at + length
    if rng.random() < 0.5:  # A fraction behind it.
        under = rng.choice(names) + " + " + rng.choice(names)
        wide = font.getlength(under)
        at = right + style.size * 0.4
        page.draw.text((at, y - font.size * 0.5), rng.choice(names), font=font, fill=style.ink)
        page.draw.line((at, y + font.size * 0.62, at + wide, y + font.size * 0.62), fill=style.ink)
        page.draw.text((at, y + font.size * 0.65), under, font=font, fill=style.ink)
        right, end, y = at + wide, end + font.size * 0.5, y - font.size * 0.5
    page.add("formula", (round(left), max(top, round(y)), round(min(right, x + width)), round(end)))
    return round(end) + _gap(page)


def caption(page, x, y, width, bottom):
    rng = page.rng
    font = page.style.text(0.85)
    start = rng.choice(("Figure", "Fig.", "Table", "Chart")) + f" {rng.randint(1, 30)}:"
    right, end = page.set_text([start, *page.words.run(rng.randint(3, 18))], x, y, width, font,
                               bottom=bottom)
    if end > y:
        page.add("caption", (x, y, right, end))
    return end + _gap(page)


def listing(page, x, y, width, bottom):
    """A block of code, often on a ground or in a frame of its own."""
    rng, style = page.rng, page.style
    font = style.code(0.95)
    pad = _gap(page, rng.uniform(0.2, 0.9))
    high = round(rng.randint(2, 16) * page.line_height(font)) + 2 * pad
    if y + high > bottom or width < 12 * style.size:
        return y
    box = (x, y, x + width, y + high)
    if rng.random() < 0.6:
        shade = tuple(max(0, value - rng.randint(4, 22)) for value in style.paper)
        page.draw.rectangle(box, fill=shade, outline=style.accent if rng.random() < 0.3 else None)
    elif rng.random() < 0.4:
        page.draw.rectangle(box, outline=style.ink)
    colours = tuple(tuple(rng.randrange(0, 170) for _ in range(3)) for _ in range(4))
    code(page, (x + pad, y + pad, x + width - pad, y + high - pad), rng.random() < 0.2,
         colours if rng.random() < 0.6 else None)
    page.add("code", box)
    return y + high + _gap(page)


def code(page, box, numbers=False, colours=None):
    """Source text from the top of the box down, in colours by word class if there are some."""
    x0, y0, x1, y1 = box
    font = page.style.code(page.rng.uniform(0.75, 1.05))
    step, wide = page.line_height(font), font.getlength("0")
    lines = page.words.code(int((y1 - y0) / step))
    x = x0 + (5 * wide if numbers else 0)
    columns = max(1, int((x1 - x) / wide))
    ink, keyword, string, comment = colours or (page.style.ink,) * 4
    keywords = ("def", "class", "if", "elif", "else:", "for", "return", "import", "from", "try:",
                "while", "with", "raise", "in", "not", "and", "None", "self")
    for number, line in enumerate(lines):
        y, line = y0 + number * step, line[:columns]
        if numbers:
            page.draw.text((x0, y), f"{number + 1:4}", font=font, fill=comment)
        if line.lstrip().startswith("#"):
            page.draw.text((x, y), line, font=font, fill=comment)
            continue
        column = 0
        for word in line.split(" "):
            fill = keyword if word in keywords else string if "'" in word or '"' in word else ink
            if word:
                page.draw.text((x + column * wide, y), word, font=font, fill=fill)
            column += len(word) + 1
