"""A page that is being drawn, and the boxes of what is on it."""

from PIL import Image, ImageDraw

import words


class Page:
    """`found` collects (label, (x0, y0, x1, y1)) in pixels."""

    def __init__(self, size, rng, style):
        self.size, self.rng, self.style = size, rng, style
        self.image = Image.new("RGB", size, style.paper)
        self.draw = ImageDraw.Draw(self.image)
        self.words = words.Words(rng, style.held_out)
        self.found = []

    def add(self, label, box):
        x0, y0, x1, y1 = box
        x0, y0 = max(0, x0), max(0, y0)
        x1, y1 = min(self.size[0], x1), min(self.size[1], y1)
        if x1 - x0 > 2 and y1 - y0 > 2:
            self.found.append((label, (x0, y0, x1, y1)))

    def line_height(self, font):
        return round(font.size * self.style.leading)

    def wrapped(self, text, font, width):
        """[[word]] of lines no wider than `width`."""
        space, lines, line, used = font.getlength(" "), [], [], 0
        for word in text:
            length = font.getlength(word)
            if line and used + space + length > width:
                lines.append(line)
                line, used = [], 0
            used += length + (space if line else 0)
            line.append(word)
        return lines + [line] if line else lines

    def set_line(self, line, x, y, font, width, justify, fill):
        """Returns the right end."""
        if not justify or len(line) < 3:
            text = " ".join(line)
            self.draw.text((x, y), text, font=font, fill=fill)
            return x + font.getlength(text)
        gap = (width - sum(font.getlength(word) for word in line)) / (len(line) - 1)
        at = x
        for word in line:
            self.draw.text((at, y), word, font=font, fill=fill)
            at += font.getlength(word) + gap
        return x + width

    def set_text(self, text, x, y, width, font, fill=None, justify=False, bottom=None):
        """Sets words from the top down; (right end, bottom) of what was set, not below `bottom`."""
        step, right = self.line_height(font), x
        lines = self.wrapped(text, font, width)
        for i, line in enumerate(lines):
            if bottom is not None and y + step > bottom:
                break
            end = self.set_line(line, x, y, font, width, justify and i + 1 < len(lines),
                                fill or self.style.ink)
            right, y = max(right, end), y + step
        return round(right), y
