"""Transformer-LS beside full attention and Longformer in the lengths of three tasks of the Long Range Arena."""

from . import encoders
from .running import SETTINGS, checked, documents, estimates, make, medians, running, seconds
from .table import Row, Table, Verdict

TITLE = "S5: Transformer-LS, Longformer and full attention on three LRA tasks"
# Tokens; documents of an item; and the paper's seconds a batch of full attention, Longformer and Transformer-LS.
TASKS = {"ListOps": (2048, 1, 0.444, 0.380, 0.187), "Text": (4096, 1, 0.071, 0.112, 0.037),
         "Retrieval": (4096, 2, 0.273, 0.486, 0.201)}
BATCH = 32


ALL, CLASS = "all rows", "class row"


def configs(shape):
    """With heads that read every token, so that all layers compute all rows, as the paper's code does; and with those
    of the task, for which the last layer of the others computes one row, and that of LS its attention for all."""
    full, longformer = encoders.full(shape), encoders.longformer(shape)
    tagging = {"full": ["BertForTokenClassification"], "Longformer": ["LongformerForTokenClassification"]}
    return {ALL: {"LS": encoders.transformer_ls(shape, cls_mode="none"),
                  "full": {**full, "architectures": tagging["full"]},
                  "Longformer": {**longformer, "architectures": tagging["Longformer"]}},
            CLASS: {"LS": encoders.transformer_ls(shape), "full": full, "Longformer": longformer}}


def rows_of(task, heads, found, tokens, counted):
    printed = dict(zip(("full", "Longformer", "LS"), TASKS[task][2:]))
    for name in ("full", "Longformer"):
        paper, ours = printed[name] / printed["LS"], found[name] / found["LS"]
        count = counted[name, tokens]["multiply_adds"] / counted["LS", tokens]["multiply_adds"]
        row = Row(f"{task}, {heads}, time of {name} over LS", f"{paper:.2f}", f"{ours:.2f} ({found[name]:.2f} s over "
                  f"{found['LS']:.2f} s)", ours / paper, why=f"by count {count:.2f}")
        if heads == ALL:
            row.verdict = Verdict.MET if ours > 1 else Verdict.MISSED
        yield row


def run(options):
    shape = encoders.Shape(16, 2, 32, 2, 128) if options.tiny else encoders.Shape(64, 2, 128, 2, 4096)
    batch = 2 if options.tiny else BATCH
    lengths = {task: tokens // 32 if options.tiny else tokens for task, (tokens, *_) in TASKS.items()}
    table = Table(f"{TITLE}, batch of {batch}", ("paper", "ours", "ours over paper", ""))
    for heads, by_name in configs(shape).items():
        directories = make(options, f"s5-{heads.split()[0]}", by_name)
        counted = estimates(directories, sorted(set(lengths.values())))
        with running(directories) as ours:
            compared = checked(options, directories, ours, min(lengths.values()))
            for task, tokens in lengths.items():
                given = documents(batch * TASKS[task][1], tokens)
                found = medians({name: seconds(process, given) for name, process in ours.items()}, 3)
                table.rows += rows_of(task, heads, found, tokens, counted)
    table.notes.append(compared)
    table.notes.append(
        f"The paper does not print its shape; here it is that of its table 1: {shape}, every document of the longest "
        "length, windows of 8 and 32 landmarks (LS), 512 (Longformer), BERT's configuration (full). Retrieval encodes "
        "both documents of an item one by one, without the head for pairs. With a class row, the last layer of full "
        "attention and of Longformer computes that row alone; LS, whose class row attends to what attention made of "
        f"every token, only its feed-forward. {SETTINGS}, models in turns.")
    return table
