"""configurations.tsv: the models that the five papers' tables name, and what is printed of each.

A config cell is `key=JSON` parts joined by `;`; `-` is a model that no configuration of this server expresses.
"""

import csv
import dataclasses
import json
import pathlib
import re

FILE = pathlib.Path(__file__).with_name("configurations.tsv")
SPECIALS = 4  # Rows of a fairseq vocabulary that its dictionary does not list.


@dataclasses.dataclass(frozen=True)
class Printed:
    """A figure as a paper prints it; `unit` is what one of its last digit is worth."""
    text: str
    value: float
    unit: float

    @staticmethod
    def of(text):
        digits = re.match(r"\d+(?:\.(\d+))?", text)
        return Printed(text, float(digits[0]), 10.0 ** -len(digits[1] or "")) if digits else None

    def agrees(self, value, tolerance=0.02):
        """Within the tolerance, or the very digits."""
        return abs(value / self.value - 1) <= tolerance or abs(value - self.value) <= self.unit / 2


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A row. `meaning` names the rule by which the paper counts its FLOPs (rules.py)."""
    paper: str
    table: str
    name: str
    task: str
    parameters: Printed | None  # Millions.
    flops: Printed | None  # 1e9 multiply-adds of one item; for CST a ratio of score pairs.
    meaning: str
    input: str
    cell: str
    note: str

    @property
    def served(self):
        return self.cell != "-"

    @property
    def config(self):
        return {key: json.loads(value) for key, value in (part.split("=", 1) for part in self.cell.split(";"))}

    @property
    def has_cost(self):
        """Whether multiply-adds of an item are printed; CST's cells are ratios."""
        return self.flops is not None and self.meaning != "C"

    @property
    def documents(self):
        """Texts of one item: two where a model compares them."""
        return int(self.input.split(" x ")[0]) if " x " in self.input else 1

    @property
    def size(self):
        """What Estimate is asked for: tokens of a text, or the sides of a picture before it is padded."""
        if padded := re.search(r"\((\d+)x(\d+) padded\)", self.input):
            return {"height": int(padded[1]), "width": int(padded[2])}
        if picture := re.fullmatch(r"(\d+)x(\d+)", self.input):
            return {"height": int(picture[1]), "width": int(picture[2])}
        tokens = re.fullmatch(r"(?:2 x )?(\d+) tokens(?:, 1 global)?", self.input)
        return {"num_tokens": int(tokens[1])} if tokens else None

    @property
    def other_reading(self):
        """Whether another row has these very cells, by a likelier reading of what the paper leaves open."""
        return "other reading" in self.table


def read():
    with FILE.open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Configuration(row["paper"], row["table"], row["name"], row["task"], Printed.of(row["params_M"]),
                              Printed.of(row["flops_G"]), row["flops_meaning"], row["input"], row["config"],
                              "" if row["note"] == "-" else row["note"]) for row in rows]


def files_beside(config):
    """What lies beside config.json: the dictionary of a language model, whose symbols are as many as its
    vocabulary says."""
    tokenizer = config.get("tokenizer")
    if not tokenizer:
        return {}
    count = config["vocab_size"] - SPECIALS
    symbols = map(str, range(count)) if tokenizer["type"] == "fairseq_enwik8" else map(chr, range(97, 97 + count))
    return {tokenizer["file"]: "".join(f"{symbol} 1\n" for symbol in symbols)}
