"""Trains one family's classifier on a task.

    python train.py FAMILY --task listops --work DIR --steps 4000 [--threads 1] [--device cpu]

FAMILY is transformer_ls, luna, cst or longformer. All see the same documents in the same batches,
which depend on --seed and the step only, with the same sizes, rates and number of steps. Writes
DIR/<task>-<family>.pt every few minutes and goes on from it when started again.
"""

import argparse
import dataclasses
import math
import pathlib
import time

import torch
from torch.nn import functional as F

import parts
import task as tasks

WARMUP = 0.05  # Share of the steps.
SAVE_SECONDS = 180


def rate(step, steps):
    """Share of the peak rate: a linear rise, then a cosine to zero."""
    rise = max(1, int(WARMUP * steps))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def optimizer_of(model, peak):
    matrices = [value for value in model.values if value.dim() > 1]
    vectors = [value for value in model.values if value.dim() <= 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01},
                              {"params": vectors, "weight_decay": 0.0}], lr=peak, betas=(0.9, 0.98))


def save(path, model, optimizer, step, options):
    partial = path.with_suffix(".partial")
    torch.save({"tensors": {name: value.detach() for name, value in model.tensors().items()},
                "optimizer": optimizer.state_dict(), "step": step, "config": model.config,
                "longest": options.positions,
                "options": {"seed": options.seed, "steps": options.steps, "batch": options.batch,
                            "rate": options.rate}}, partial)
    partial.replace(path)


def resume(path, model, optimizer):
    """The step to go on with."""
    if not path.exists():
        return 0
    saved = torch.load(path, weights_only=True)
    with torch.no_grad():
        for name, value in model.tensors().items():
            value.copy_(saved["tensors"][name])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


@torch.no_grad()
def accuracy(model, form, task, documents, count, device):
    right, chosen = 0, range(min(count, len(documents)))
    for index in chosen:
        ids, real = tasks.padded([documents[index]], form, task)
        right += int(model(ids.to(device), real.to(device)).argmax()) == documents.labels[index]
    return right / len(chosen)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("family", choices=tasks.FAMILIES)
    parser.add_argument("--task", default="listops")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--positions", type=int,
                        help="symbols that a model takes, default the longest document's; those "
                             "beyond it have positions that nothing trained")
    for field in ("width", "layers", "heads", "ffn"):
        parser.add_argument(f"--{field}", type=int, default=getattr(tasks.Size(), field))
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    form = tasks.family(options.family)
    task, splits = tasks.read(options.work, options.task)
    options.positions = max(task.longest, options.positions or 0)
    task = dataclasses.replace(task, longest=options.positions)
    size = tasks.Size(options.width, options.layers, options.heads, options.ffn)
    model = parts.Classifier(form, form.config(task, size), options.seed).to(options.device)
    optimizer = optimizer_of(model, options.rate)
    path = options.work / f"{options.task}-{options.family}.pt"
    begin = resume(path, model, optimizer)
    total, right, seen, started, saved = 0.0, 0, 0, time.time(), time.time()
    for step in range(begin, options.steps):
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate(step, options.steps)
        documents, labels = splits["train"].batch(options.seed, step, options.batch)
        ids, real = (x.to(options.device) for x in tasks.padded(documents, form, task))
        labels = torch.from_numpy(labels).to(options.device)
        logits = model(ids, real)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, seen = total + loss.item() * len(labels), seen + len(labels)
        right += int((logits.argmax(-1) == labels).sum())
        if (step + 1) % 50 == 0:
            print(f"{options.family} step {step + 1} of {options.steps}: loss {total / seen:.3f}, "
                  f"right {right / seen:.3f}, {time.time() - started:.0f} s", flush=True)
            total, right, seen = 0.0, 0, 0
        if time.time() - saved > SAVE_SECONDS:
            save(path, model, optimizer, step + 1, options)
            saved = time.time()
    save(path, model, optimizer, options.steps, options)
    test = accuracy(model, form, task, splits["test"], 200, options.device)
    print(f"{path}: {sum(v.numel() for v in model.values):,} parameters, "
          f"{100 * test:.1f} % of the first test documents, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
