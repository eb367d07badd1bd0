"""Cost of a token and memory of a document over its length, linear families beside full attention."""

from . import encoders
from .curves import Curve, draw
from .running import SETTINGS, checked, documents, estimates, make, medians, peak_bytes, running, seconds
from .table import Row, Table, Verdict

TITLE = "S3: time and memory over length"
GREW, OFF = 1.1, 0.02
ALIKE = 8192  # Tokens that a timed function reads, in as many documents as that takes.
FULL_BY_TURNS = 8192  # Above, full attention runs once.


def configs(shape):
    return {"Transformer-LS": encoders.transformer_ls(shape), "Luna": encoders.luna(shape, 128),
            "CST": encoders.cst(shape, 64), "Longformer": encoders.longformer(shape), "full": encoders.full(shape)}


def ns_per_token(ours, lengths):
    """name -> {tokens: nanoseconds}."""
    found = {}
    for repeats, some in ((9, [n for n in lengths if n <= ALIKE]), (3, [n for n in lengths if n > ALIKE])):
        found |= medians({(name, n): seconds(process, documents(1, n), max(1, ALIKE // n))
                          for n in some for name, process in ours.items() if name != "full" or n <= FULL_BY_TURNS},
                         repeats)
    for n in lengths:
        if n > FULL_BY_TURNS:
            found["full", n] = seconds(ours["full"], documents(1, n))()
    return {name: {n: 1e9 * found[name, n] / n for n in lengths} for name in ours}


def time_row(name, costs, counted):
    first, last = min(costs), max(costs)
    ratio = costs[last] / costs[first]
    by_count = (counted[name, last]["multiply_adds"] / last) / (counted[name, first]["multiply_adds"] / first)
    row = Row(f"{name}, ns a token", "quadratic" if name == "full" else "linear",
              ", ".join(f"{cost:,.0f}" for cost in costs.values()), ratio)
    if name == "full":
        row.why = f"by count {by_count:.1f}"
    else:
        row.verdict = Verdict.MET if ratio <= GREW else Verdict.MISSED
        row.why = f"by count {by_count:.2f}"
    return row


def memory_row(name, peaks, counted):
    """The ratio is that of the length where it is farthest from 1."""
    formula = {n: counted[name, n]["workspace_bytes"] for n in peaks}
    ratios = {n: peaks[n] / formula[n] for n in peaks}
    worst = max(ratios, key=lambda n: abs(ratios[n] - 1))
    row = Row(f"{name}, MB", ", ".join(f"{value / 1e6:.1f}" for value in formula.values()),
              ", ".join(f"{value / 1e6:.1f}" for value in peaks.values()), ratios[worst])
    row.verdict = Verdict.MET if abs(ratios[worst] - 1) <= OFF else Verdict.MISSED
    if row.verdict is Verdict.MISSED:
        good = [n for n in peaks if all(abs(ratios[m] - 1) <= OFF for m in peaks if m >= n)]
        since = f"within {OFF:.0%} from {good[0]:,} tokens on" if good else f"{ratios[max(peaks)]:.3f} at the longest"
        row.why = (f"{(peaks[worst] - formula[worst]) / 1e6:+.2f} MB at {worst:,} tokens, {since}: the formula "
                   "counts the rows behind the last one that its panel may read, and nothing writes there")
    return row


def pictures(costs, peaks, note):
    def of(values, scale):
        return [Curve(name, [(n, value * scale) for n, value in line.items() if value > 0])
                for name, line in values.items()]

    return {"s3_time.svg": draw("Time of a token over the length of its document", of(costs, 1e-3), "tokens",
                                "microseconds a token", note),
            "s3_memory.svg": draw("Memory of a document beside the weights", of(peaks, 1e-6), "tokens", "MB", note)}


def run(options):
    lengths = [64, 128] if options.tiny else [1024 << i for i in range(8)]
    shape = encoders.Shape(32, 2, 64, 2, 128) if options.tiny else encoders.Shape(256, 4, 1024, 2, lengths[-1])
    directories = make(options, "s3", configs(shape))
    counted = estimates(directories, lengths)
    with running(directories) as ours:
        compared = checked(options, directories, ours, lengths[0])
        costs = ns_per_token(ours, lengths)
    weighed = {name: [n for n in lengths if name != "full" or n <= FULL_BY_TURNS] for name in directories}
    peaks = {name: {n: peak_bytes(directories[name], documents(1, n), counted[name, n]["workspace_bytes"])
                    for n in weighed[name]} for name in directories}
    note = f"{shape}; one document, {SETTINGS}."
    table = Table(f"{TITLE}, {' '.join(map(str, lengths))} tokens",
                  ("paper, or bytes by formula", "ours", "last over first, or measured over formula", ""))
    table.rows = [time_row(name, costs[name], counted) for name in directories]
    table.rows += [memory_row(name, peaks[name], counted) for name in directories]
    table.notes = [note, "Windows of 8 and 32 landmarks a head (LS), 128 rows (Luna), slices of 64 (CST), 512 "
                   "(Longformer); full attention is BERT's configuration, measured once above "
                   f"{FULL_BY_TURNS:,} tokens, and its memory up to there.", compared]
    table.pictures = pictures(costs, peaks, note)
    return table
