"""Where the Composite Slice Transformer stops being cheaper than linear attention, and what it saves at 256 tokens."""

import math

from . import encoders
from .curves import Curve, draw
from .running import SETTINGS, checked, documents, estimates, make, medians, running, seconds
from .table import Row, Table, Verdict

TITLE = "S8: Composite Slice Transformer, crossover with linear methods and saving at 256 tokens"
SLICES = (8, 16, 32)
LINEAR = {"Luna-128": "Luna with 128 rows", "LS-128": "LS with 128 landmarks and windows of 8"}
WITHIN, SAVES = 0.2, 1.5
ALIKE = 4096  # Tokens that a timed function reads at least.
PRINTED = {8: 1.50, 16: 1.52, 32: 1.54}  # T3, least extension; of a whole language model.
SUBLAYER = 256  # Tokens.


def configs(shape):
    """Every model takes the mean over all tokens, so that no last layer computes fewer rows than others."""
    linear = {"Luna-128": encoders.luna(shape, 128, pooling="mean"),
              "LS-128": encoders.transformer_ls(shape, rank=128, cls_mode="none")}
    return linear | {f"CST-{length}": encoders.cst(shape, length) for length in SLICES}


def sublayer_configs(shape):
    """The feed-forward block has one channel: next to nothing but attention with its projections is left."""
    return {"full": encoders.full(shape)} | {f"CST-{length}": encoders.cst(shape, length) for length in SLICES}


def crossing(lengths, cst, linear):
    """Tokens up to which `cst` costs no more than `linear`, both per length, between two lengths on logarithmic
    scales; None if it does at the longest."""
    above = [math.log(cst[n] / linear[n]) for n in lengths]
    last = max((i for i, value in enumerate(above) if value <= 0), default=-1)
    if last < 0:
        return float(lengths[0])
    if last + 1 == len(lengths):
        return None
    part = -above[last] / (above[last + 1] - above[last])
    return lengths[last] * (lengths[last + 1] / lengths[last]) ** part


def said(tokens, longest):
    return f"above {longest:,}" if tokens is None else f"{tokens:,.0f}"


def exponentials(name, tokens, heads):
    """A token's in a layer: of its keys, and of the rows that it is packed into."""
    if name == "Luna-128":
        return heads * 2 * 128
    if name == "LS-128":
        return heads * (2 * 128 + 16)
    length = int(name.removeprefix("CST-"))
    return heads * (length + tokens // length ** 2)


def crossing_row(length, other, lengths, times, counted, heads):
    cst = f"CST-{length}"
    counts = {name: {n: counted[name, n]["multiply_adds"] for n in lengths} for name in (cst, other)}
    predicted = crossing(lengths, counts[cst], counts[other])
    found = crossing(lengths, times[cst], times[other])
    row = Row(f"{cst} costs less than {LINEAR[other]} up to", said(predicted, lengths[-1]), said(found, lengths[-1]))
    if predicted is None:
        return row
    row.ratio = (found or lengths[-1]) / predicted
    row.verdict = Verdict.MET if found and abs(row.ratio - 1) <= WITHIN else Verdict.MISSED
    if row.verdict is Verdict.MISSED:
        at = min(lengths, key=lambda n: abs(math.log(n / predicted)))
        paces = [times[name][at] / counts[name][at] * 1e12 for name in (cst, other)]
        softmax = [exponentials(name, at, heads) for name in (cst, other)]
        row.why = (f"at {at:,} tokens a multiply-add of CST takes {paces[0]:.1f} ps, one of the other {paces[1]:.1f}; "
                   f"the count leaves out {softmax[0]:,} and {softmax[1]:,} exponentials a token and layer")
    return row


def timed(ours, lengths):
    functions = {(name, n): seconds(process, documents(1, n), max(1, ALIKE // n))
                 for n in lengths for name, process in ours.items()}
    found = medians(functions, 3, warmup=0)
    return {name: {n: found[name, n] for n in lengths} for name in ours}


def sublayer_rows(options, table):
    shape = encoders.Shape(128, 8, 1, 2 if options.tiny else 16, SUBLAYER)
    batch = documents(2 if options.tiny else 32, SUBLAYER)
    directories = make(options, "s8-sublayer", sublayer_configs(shape))
    counted = estimates(directories, [SUBLAYER])
    with running(directories) as ours:
        checked(options, directories, ours, SUBLAYER)
        found = medians({name: seconds(process, batch) for name, process in ours.items()}, 5)
    for length in SLICES:
        name = f"CST-{length}"
        saved = found["full"] / found[name]
        count = counted["full", SUBLAYER]["multiply_adds"] / counted[name, SUBLAYER]["multiply_adds"]
        row = Row(f"{name} at {SUBLAYER} tokens, attention sublayer, speed over full", f"{PRINTED[length]:.2f}x",
                  f"{saved:.2f}x", saved / PRINTED[length], Verdict.MET if saved >= SAVES else Verdict.MISSED)
        row.why = f"by count {count:.2f}x"
        table.rows.append(row)
    table.notes.append(f"The sublayer, projections in, is measured in T3's width with next to no feed-forward block "
                       f"({shape}), {len(batch)} texts at once, beside BERT's configuration. The paper's ratios are of "
                       "its whole language model.")


def run(options):
    lengths = [64, 128] if options.tiny else [256 << i for i in range(9)]
    shape = encoders.Shape(32, 2, 64, 1, 128) if options.tiny else encoders.Shape(256, 4, 1024, 2, lengths[-1])
    directories = make(options, "s8", configs(shape))
    counted = estimates(directories, lengths)
    table = Table(TITLE, ("by count, or paper", "ours", "ours over the former", ""))
    with running(directories) as ours:
        table.notes.append(checked(options, directories, ours, lengths[0]))
        times = timed(ours, lengths)
    for length in SLICES:
        table.rows += [crossing_row(length, other, lengths, times, counted, shape.heads) for other in LINEAR]
    note = f"{shape}, mean over all tokens; one document, {SETTINGS}."
    table.notes += [note, *(f"{name}, ns a token: " + ", ".join(f"{1e9 * times[name][n] / n:,.0f}" for n in lengths)
                            for name in times)]
    sublayer_rows(options, table)
    lines = [Curve(name, [(n, 1e6 * value / n) for n, value in line.items()]) for name, line in times.items()]
    table.pictures = {"s8_crossover.svg": draw("Time of a token: slices beside linear attention", lines, "tokens",
                                               "microseconds a token", note)}
    return table
