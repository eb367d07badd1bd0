"""What dilated windows cost in Longformer, beside the loop over offsets that the article calls slow."""

from . import encoders, plain
from .running import SETTINGS, documents, make, medians, running
from .table import Row, Table, Verdict

TITLE = "S10: Longformer with dilated windows"
DILATIONS = (1, 2, 4)
HEADS_DILATED = 2
MOST = 1.15


def configs(shape, window):
    def dilated(dilation):
        heads = [1] * (shape.heads - HEADS_DILATED) + [dilation] * HEADS_DILATED
        return encoders.longformer(shape, window, attention_dilation=[heads] * shape.layers)

    return {f"dilation {dilation}": dilated(dilation) for dilation in DILATIONS}


def timed(process, given, attention):
    """A function for `medians` that also notes the seconds of attention."""
    def run():
        answer = process.run(given)
        attention.append(answer["attention"])
        return float(answer["seconds"])
    return run


def rows_of(tokens, found, attention):
    first = found[f"dilation {DILATIONS[0]}"]
    for dilation in DILATIONS[1:]:
        ours = found[f"dilation {dilation}"]
        parts = [min(attention[f"dilation {d}"]) for d in (DILATIONS[0], dilation)]
        row = Row(f"{tokens:,} tokens, dilation {dilation} on {HEADS_DILATED} heads", "slow (a loop)",
                  f"{ours:.3f} s, undilated {first:.3f} s", ours / first,
                  Verdict.MET if ours <= MOST * first else Verdict.MISSED)
        row.why = f"attention {parts[1]:.3f} s, undilated {parts[0]:.3f} s"
        yield row


def loop_rows(directories, ours, tokens, repeats):
    """The loop form on one document, its answers compared; seconds of whole models."""
    given = documents(1, tokens)
    for name, directory in directories.items():
        loop = plain.model(directory)
        answer, logits = ours[name].run(given)["logits"][0], []
        functions = {"loop": lambda loop=loop, logits=logits: logits.append(loop(given[0])[0].tolist()),
                     "ours": lambda process=ours[name]: float(process.run(given)["seconds"])}
        found = medians(functions, repeats, warmup=0)
        plain.check(name, answer, logits[0])
        yield Row(f"{tokens:,} tokens, {name}, loop over offsets in PyTorch over ours", "slow",
                  f"{found['loop']:.2f} s over {found['ours']:.3f} s", found["loop"] / found["ours"])


def run(options):
    lengths = [128, 256] if options.tiny else [4096, 16384]
    sizes = (48, 12, 64, 2) if options.tiny else (768, 12, 3072, 4)
    shape = encoders.Shape(*sizes, lengths[-1])
    window = 32 if options.tiny else 512
    directories = make(options, "s10", configs(shape, window))
    table = Table(f"{TITLE}, windows of {window}", ("paper", "ours", "over undilated, or over ours", ""))
    with running(directories) as ours:
        if plain.available(options):
            table.rows += loop_rows(directories, ours, lengths[0], 1)
            table.notes.append("The loop's answers agree with ours, dilated and not.")
        else:
            table.notes.append("No PyTorch here: answers were not compared, and the loop was not measured.")
        for tokens in lengths:
            attention = {name: [] for name in ours}
            found = medians({name: timed(process, documents(1, tokens), attention[name])
                             for name, process in ours.items()}, 3)
            table.rows += rows_of(tokens, found, attention)
    table.notes.append(f"{shape}; {HEADS_DILATED} heads of every layer are dilated; one global token; one document, "
                       f"{SETTINGS}.")
    return table
