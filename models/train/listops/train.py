"""Trains one family's classifier on a task.

    python train.py FAMILY --task listops --work DIR --steps 4000 [--threads 1] [--device cpu]
        [--schedule cosine|flat] [--until STEP]

FAMILY is transformer_ls, luna, cst or longformer. All see the same documents in the same batches,
which depend on --seed and the step only, with the same sizes, rates and number of steps. Writes
DIR/<task>-<family>.pt every few minutes and goes on from it when started again.
"""

import dataclasses
import math
import time

import torch
from torch.nn import functional as F

import parts
import task as tasks

SAVE_SECONDS = 180


def cosine(step, steps):
    """A rise over the first twentieth, then a cosine to zero."""
    rise = max(1, int(0.05 * steps))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def flat(step, steps):
    """A rise of 100 steps, then the peak, then a line to zero over the last fifth. How far a run goes
    can be decided until that fifth begins: with --until, nothing before it depends on --steps."""
    return min(1, (step + 1) / 100, (steps - step) / max(1, 0.2 * steps))


SCHEDULES = {"cosine": cosine, "flat": flat}  # Shares of the peak rate.


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
                            "rate": options.rate, "schedule": options.schedule}}, partial)
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


class Progress:
    """Loss and hits since they were last told."""

    def __init__(self, family, steps):
        self.family, self.steps, self.started = family, steps, time.time()
        self.total, self.right, self.seen = 0.0, 0, 0

    def add(self, loss, logits, labels):
        self.total += loss * len(labels)
        self.right += int((logits.argmax(-1) == labels).sum())
        self.seen += len(labels)

    def tell(self, step):
        print(f"{self.family} step {step} of {self.steps}: loss {self.total / self.seen:.3f}, right "
              f"{self.right / self.seen:.3f}, {time.time() - self.started:.0f} s", flush=True)
        self.total, self.right, self.seen = 0.0, 0, 0


def train(model, optimizer, form, task, documents, path, options):
    """Goes on from `path` to the step options.until or options.steps, which is returned."""
    begin, saved = resume(path, model, optimizer), time.time()
    end = min(options.until or options.steps, options.steps)
    progress = Progress(options.family, options.steps)
    for step in range(begin, end):
        share = SCHEDULES[options.schedule](step, options.steps)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * share
        batch, labels = documents.batch(options.seed, step, options.batch)
        ids, real = (x.to(options.device) for x in tasks.padded(batch, form, task))
        labels = torch.from_numpy(labels).to(options.device)
        logits = model(ids, real)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress.add(loss.item(), logits, labels)
        if (step + 1) % 50 == 0:
            progress.tell(step + 1)
        if time.time() - saved > SAVE_SECONDS or step + 1 == end:
            save(path, model, optimizer, step + 1, options)
            saved = time.time()
    return max(begin, end)


def main(arguments=None):
    parser = tasks.parser(__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--until", type=int, help="stop after this step, to go on another time")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--schedule", choices=SCHEDULES, default="cosine")
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
    path = options.work / f"{options.task}-{options.family}.pt"
    optimizer = optimizer_of(model, options.rate)
    if train(model, optimizer, form, task, splits["train"], path, options) == options.steps:
        test = accuracy(model, form, task, splits["test"], 200, options.device)
        print(f"{path}: {sum(v.numel() for v in model.values):,} parameters, "
              f"{100 * test:.1f} % of the first test documents")


if __name__ == "__main__":
    main()
