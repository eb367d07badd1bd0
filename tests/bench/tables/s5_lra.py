"""Transformer-LS beside full attention and Longformer in the lengths of three tasks of the Long Range Arena."""

from . import encoders
from .running import SETTINGS, checked, documents, estimates, make, medians, running, seconds
from .table import Row, Table, Verdict

TITLE = "S5: Transformer-LS, Longformer and full attention on three LRA tasks"
# Tokens; documents of an item; and the paper's seconds a batch of full attention, Longformer and Transformer-LS.
TASKS = {"ListOps": (2048, 1, 0.444, 0.380, 0.187), "Text": (4096, 1, 0.071, 0.112, 0.037),
         "Retrieval": (4096, 2, 0.273, 0.486, 0.201)}
BATCH = 32


def configs(shape):
    return {"LS": encoders.transformer_ls(shape), "full": encoders.full(shape),
            "Longformer": encoders.longformer(shape)}


def rows_of(task, found, tokens, counted):
    printed = dict(zip(("full", "Longformer", "LS"), TASKS[task][2:]))
    for name in ("full", "Longformer"):
        paper, ours = printed[name] / printed["LS"], found[name] / found["LS"]
        count = counted[name, tokens]["multiply_adds"] / counted["LS", tokens]["multiply_adds"]
        yield Row(f"{task}, time of {name} over LS", f"{paper:.2f}", f"{ours:.2f} ({found[name]:.2f} s over "
                  f"{found['LS']:.2f} s)", ours / paper, Verdict.MET if ours > 1 else Verdict.MISSED,
                  f"by count {count:.2f}")


def run(options):
    shape = encoders.Shape(16, 2, 32, 2, 128) if options.tiny else encoders.Shape(64, 2, 128, 2, 4096)
    batch = 2 if options.tiny else BATCH
    directories = make(options, "s5", configs(shape))
    lengths = {task: tokens // 32 if options.tiny else tokens for task, (tokens, *_) in TASKS.items()}
    counted = estimates(directories, sorted(set(lengths.values())))
    table = Table(f"{TITLE}, batch of {batch}", ("paper", "ours", "ours over paper", ""))
    with running(directories) as ours:
        table.notes.append(checked(options, directories, ours, min(lengths.values())))
        for task, tokens in lengths.items():
            given = documents(batch * TASKS[task][1], tokens)
            found = medians({name: seconds(process, given) for name, process in ours.items()}, 3)
            table.rows += rows_of(task, found, tokens, counted)
    table.notes.append(
        f"The paper does not print its shape; here it is that of its table 1: {shape}, every document of the longest "
        "length, windows of 8 and 32 landmarks (LS), 512 (Longformer), BERT's configuration (full). Retrieval encodes "
        f"both documents of an item one by one, without the head for pairs. {SETTINGS}, models in turns.")
    return table
