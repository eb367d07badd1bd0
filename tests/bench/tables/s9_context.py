"""S9: bits per byte over a context of 32 K: windows moved by 512 bytes, as published, and the state carried on."""

import math
import statistics
import time

from tables.served import ROOT, serving
from tables.table import Row, Table, Verdict

TITLE = "S9: 1 MB scored with a context of 32 K"
CONTEXT, STEP = 32_768, 512
TOTAL, STRETCH = 1 << 20, 1 << 17  # The state is carried through each stretch.
SAMPLES = 2  # Windows a stretch that are also scored as published.
WITHIN = 0.002
MODEL = ROOT / "models/zoo/code-lm"


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
    """Both ways over the same text; of the published one only some windows are run."""

    def __init__(self, served, text, context, stretch, step):
        self.seconds = {"carried": 0.0, "window": []}
        self.all, self.carried, self.windows = [], [], []
        for begin in range(0, len(text), stretch):
            part = text[begin:begin + stretch]
            start = time.perf_counter()
            logs = scored(served, part)
            self.seconds["carried"] += time.perf_counter() - start
            self.all += logs[1:]
            for i in range(SAMPLES):
                end = context + (len(part) - context) * (i + 1) // SAMPLES
                start = time.perf_counter()
                self.windows += scored(served, part[end - context:end])[-step:]
                self.seconds["window"].append(time.perf_counter() - start)
                self.carried += logs[end - step:end]


def run(options):
    context, stretch, step, total = (512, 2_048, 64, 4_096) if options.tiny else (CONTEXT, STRETCH, STEP, TOTAL)
    with serving({"m": MODEL}, "--default_timeout_seconds=0", "--max_timeout_seconds=0",
                 "--max_queue_seconds=86400") as served:
        scores = Scores(served, corpus(total), context, stretch, step)
    table = Table(TITLE, ("paper or goal", "ours", "", ""))
    readings = context // step
    windows = 1 + -(-(total - context) // step)
    one = statistics.median(scores.seconds["window"])
    table.rows.append(Row("bytes read for a byte scored", f"{readings} in overlapping windows", "1, the state carried",
                          1 / readings))
    apart = bits(scores.carried) - bits(scores.windows)
    near = abs(apart) <= WITHIN
    table.rows.append(Row(
        f"bits per byte of {len(scores.windows):,} bytes, both ways", f"{bits(scores.windows):.4f} in windows",
        f"{bits(scores.carried):.4f} carried ({apart:+.4f})", None, Verdict.MET if near else Verdict.MISSED,
        "" if near else f"carried, a byte sees up to {stretch:,} before it and not {context:,}"))
    table.rows.append(Row(f"bits per byte of {total:,} bytes, carried", "", f"{bits(scores.all):.4f}"))
    took = scores.seconds["carried"]
    table.rows.append(Row("seconds", f"{one * windows:,.0f} for {windows:,} windows, from {one:.2f} of one",
                          f"{took:.1f}", one * windows / took))
    table.notes.append(
        f"code-lm, whose schedule is `paper`, on this project's sources, in stretches of {stretch:,} bytes, each of "
        f"them one call (/v2 infer, token_logprobs). As published, {context:,} bytes are read for the last {step}; so "
        f"are {SAMPLES} windows a stretch here, and the time of all is theirs times their number.")
    return table
