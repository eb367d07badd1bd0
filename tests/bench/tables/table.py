"""What a table of a paper comes to: rows with the paper's value, ours, and whether the goal is met."""

import dataclasses
import enum


class Verdict(enum.Enum):
    MET = "met"
    MISSED = "missed"
    REPORTED = "reported"  # Beside the paper's value, without a goal.


@dataclasses.dataclass
class Row:
    """One line. `paper` and `ours` are texts with their units; `ratio` is ours over the paper's or over a
    peer's, as the table's head says; `why` is there wherever a goal is missed."""
    name: str
    paper: str
    ours: str
    ratio: float | None = None
    verdict: Verdict = Verdict.REPORTED
    why: str = ""


@dataclasses.dataclass
class Table:
    """`head` names the four columns behind the row's name; `notes` are sentences below the table."""
    title: str
    head: tuple = ("paper", "ours", "ratio", "")
    rows: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    pictures: dict = dataclasses.field(default_factory=dict)  # File name to SVG text.

    def missed(self):
        return [row for row in self.rows if row.verdict is Verdict.MISSED]

    def markdown(self):
        lines = [f"| | {' | '.join(self.head)} |", "| --- | ---: | ---: | ---: | --- |"]
        for row in self.rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
            said = row.verdict.value if row.verdict is not Verdict.REPORTED else ""
            last = ": ".join(part for part in (said, row.why) if part)
            lines.append(f"| {row.name} | {row.paper} | {row.ours} | {ratio} | {last} |")
        return "\n".join([f"## {self.title}", "", *lines, "", *self.notes])


@dataclasses.dataclass
class Options:
    """How large: `tiny` runs every line of code in seconds, and its figures mean nothing."""
    tiny: bool = False
    scratch: str = ""  # Folder of random checkpoints; empty: one for this run.
    peers: bool = True  # Whether the peers run, where the table has some.
