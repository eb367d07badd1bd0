"""S9: bits per byte over a context of 32 K: windows moved by 512 bytes, as published, and the state carried on."""

import dataclasses
import json
import math
import pathlib
import shutil
import statistics
import time

from tables.served import ROOT, serving
from tables.table import Row, Table, Verdict

TITLE = "S9: 1 MB scored with a context of 32 K"
CONTEXT, STEP = 32_768, 512
WITHIN = 0.002
MODEL = ROOT / "models/zoo/code-lm"


@dataclasses.dataclass
class Way:
    """How the state is carried: through stretches of the text, each of them one call. `windows`: how many, of all
    stretches, are also scored as published."""
    schedule: str
    total: int
    stretch: int
    windows: int
    context: int = CONTEXT
    step: int = STEP

    def model(self, scratch):
        """code-lm with this schedule; that of the released code keeps a memory of the context."""
        if self.schedule == "paper":
            return MODEL
        folder = pathlib.Path(scratch) / f"code-lm-{self.schedule}-{self.context}"
        shutil.copytree(MODEL, folder, dirs_exist_ok=True)
        config = json.loads((folder / "config.json").read_text())
        changes = {"schedule": self.schedule, "block_len": self.step, "mem_len": self.context}
        (folder / "config.json").write_text(json.dumps({**config, **changes}))
        (folder / "longview.json").write_text(json.dumps({"dtype": "fp32", "max_tokens": self.total}))
        return folder


def ways(tiny):
    if tiny:
        return [Way("blocks", 4_096, 4_096, 2, 512, 128), Way("paper", 4_096, 2_048, 2, 512, 128)]
    return [Way("blocks", 1 << 20, 1 << 20, 16), Way("paper", 1 << 18, 1 << 17, 4)]


def corpus(count):
    """So many bytes of this project's own sources, stretches drawn from all of them."""
    found, size = [], 0
    for path in sorted(path for folder in ("models", "server", "client") for path in (ROOT / folder).rglob("*.cc")
                       if "zoo" not in path.parts):
        found.append(path.read_bytes())
        size += len(found[-1])
        if size >= count:
            return b"".join(found)[:count]
    raise RuntimeError(f"the sources have {size} bytes, not {count}")


def scored(served, text):
    """Natural log-probabilities of bytes, each given those before it."""
    body = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(text)], "data": list(text)}],
            "outputs": [{"name": "token_logprobs"}], "parameters": {"max_tokens": 0}}
    return served.post("/v2/models/m/infer", body, timeout=3600)["outputs"][0]["data"]


def bits(logarithms):
    return -sum(logarithms) / len(logarithms) / math.log(2)


class Scores:
    """The state carried through a text, and some of its windows as published."""

    def __init__(self, served, text, way):
        self.seconds = {"carried": 0.0, "window": []}
        self.all, self.carried, self.windows = [], [], []
        for begin in range(0, len(text), way.stretch):
            part = text[begin:begin + way.stretch]
            start = time.perf_counter()
            logs = scored(served, part)
            self.seconds["carried"] += time.perf_counter() - start
            self.all += logs[1:]
            each = way.windows * way.stretch // way.total
            for i in range(each):
                end = way.context + (len(part) - way.context) * (i + 1) // each
                start = time.perf_counter()
                self.windows += scored(served, part[end - way.context:end])[-way.step:]
                self.seconds["window"].append(time.perf_counter() - start)
                self.carried += logs[end - way.step:end]


def rows_of(way, scores):
    readings = way.context // way.step
    yield Row(f"`{way.schedule}`: bytes read for a byte scored", f"{readings} in overlapping windows",
              "1, the state carried", 1 / readings)
    apart = bits(scores.carried) - bits(scores.windows)
    near = abs(apart) <= WITHIN
    yield Row(f"`{way.schedule}`: bits per byte of {len(scores.windows):,} bytes, both ways",
              f"{bits(scores.windows):.4f} in windows", f"{bits(scores.carried):.4f} carried ({apart:+.4f})", None,
              Verdict.MET if near else Verdict.MISSED,
              "" if near or way.schedule != "paper"
              else f"carried, a byte sees up to {way.stretch:,} before it and not {way.context:,}")
    yield Row(f"`{way.schedule}`: bits per byte of {way.total:,} bytes, carried", "", f"{bits(scores.all):.4f}")
    windows = 1 + -(-(way.total - way.context) // way.step)
    one, took = statistics.median(scores.seconds["window"]), scores.seconds["carried"]
    yield Row(f"`{way.schedule}`: seconds", f"{one * windows:,.0f} for {windows:,} windows, from {one:.2f} of one",
              f"{took:.1f}", one * windows / took)


def run(options):
    table = Table(TITLE, ("paper or goal", "ours", "", ""))
    for way in ways(options.tiny):
        with serving({"m": way.model(options.scratch)}, "--default_timeout_seconds=0", "--max_timeout_seconds=0",
                     "--max_queue_seconds=86400") as served:
            table.rows += rows_of(way, Scores(served, corpus(way.total), way))
    table.notes.append(
        "code-lm on this project's sources. `blocks`, the released code's schedule, carries a memory of the context "
        "through all bytes in one call (/v2 infer, token_logprobs). The model's own `paper` forgets nothing: it goes "
        "through stretches, and sees more than a window does. As published, each window is read for its last bytes; "
        "the time of all is that of some of them times their number.")
    return table
