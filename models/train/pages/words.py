"""The text of pages: prose and code of the running Python's own documentation and library, so that
nothing has to be downloaded. Held-out pages take texts of their own."""

import functools
import pathlib
import re
import sysconfig

import pydoc_data.topics

_HELD_OUT_SHARE = 5  # One in so many.


def _mine(index, held_out):
    return (index % _HELD_OUT_SHARE == 0) == held_out


@functools.cache
def prose(held_out):
    """Words of the language reference."""
    found = []
    for index, (_, topic) in enumerate(sorted(pydoc_data.topics.topics.items())):
        if _mine(index, held_out):
            plain = re.sub(r"[*_`|+=\-^~#<>\\]{1,}", " ", topic)
            found += [word for word in plain.split() if len(word) < 20]
    return found


@functools.cache
def sources(held_out):
    """Lines of source files of the library."""
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found = []
    for index, path in enumerate(sorted(folder.glob("*.py"))):
        if _mine(index, held_out) and path.stat().st_size > 3000:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            found.append([line.expandtabs(4) for line in lines])
    return found


class Words:
    """Draws from one half."""

    def __init__(self, rng, held_out):
        self.rng, self.held_out = rng, held_out

    def run(self, count):
        words = prose(self.held_out)
        first = self.rng.randrange(len(words) - count)
        return words[first:first + count]

    def title(self, low=2, high=8):
        words = [word.strip(".,;:()\"'[]") for word in self.run(self.rng.randint(low, high) + 6)]
        words = [word for word in words if word][:self.rng.randint(low, high)] or ["Contents"]
        return " ".join(words).capitalize()

    def label(self):
        return self.title(1, 3)

    def number(self):
        rng = self.rng
        form = rng.randrange(4)
        if form == 0:
            return str(rng.randrange(1, 10 ** rng.randint(1, 6)))
        if form == 1:
            return f"{rng.uniform(0, 10 ** rng.randint(1, 4)):,.2f}"
        if form == 2:
            return f"{rng.uniform(-99, 99):.1f}%"
        return f"{rng.randint(1, 28):02}/{rng.randint(1, 12):02}/{rng.randint(1980, 2025)}"

    def code(self, count):
        lines = self.rng.choice(sources(self.held_out))
        first = self.rng.randrange(max(1, len(lines) - count))
        return lines[first:first + count]
