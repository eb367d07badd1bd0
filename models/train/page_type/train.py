"""Trains the classifier of pages.

    python train.py --work DIR --minutes 35 [--threads 1] [--start FILE]

DIR/page-type.pt is written every few minutes and gone on from; the rate falls with the share of the minutes used,
so a run ends when they end. Needs data.py's first shard, and reads later ones as they come. `--start` begins with
the weights of a served model.
"""

import argparse
import math
import pathlib
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

import data
import kinds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import run as runs  # noqa: E402
import vil  # noqa: E402

ARCH = ("l1,h2,d48,n1,s1,g1,p8,f4,a0_l2,h3,d96,n1,s1,g1,p2,f4,a0_"
        "l3,h6,d192,n3,s0,g0,p2,f7,a0")
# Paper is nearly zero: what is left of a patch is ink, against the bias of the embedding.
MEAN, STD = (0.9, 0.9, 0.9), (0.25, 0.25, 0.25)
PEAK, BATCH, SAVE_SECONDS, RISE = 1e-3, 16, 90, 0.03


def pixels_of(pictures):
    """[n, H, W, 3] bytes -> [n, 3, H, W] in 0..1."""
    return torch.from_numpy(np.ascontiguousarray(pictures)).permute(0, 3, 1, 2).float() / 255


def normalised(values):
    mean, std = (torch.tensor(part)[:, None, None] for part in (MEAN, STD))
    return (values - mean) / std


def augmented(values, generator):
    """Moved, other light and contrast, some in gray, noise."""
    moved = torch.roll(values, tuple(torch.randint(-12, 13, (2,), generator=generator).tolist()), (2, 3))
    shape = (len(values), 1, 1, 1)
    gain = 0.75 + 0.35 * torch.rand(shape, generator=generator)
    shift = 0.2 * torch.rand(shape, generator=generator) - 0.05
    gray = torch.rand(shape, generator=generator) < 0.2
    moved = torch.where(gray, moved.mean(1, keepdim=True).expand_as(moved), moved)
    noise = torch.randn(moved.shape, generator=generator) * 0.03 * torch.rand(shape, generator=generator)
    return (moved * gain + shift + noise).clamp(0, 1)


def rate(share):
    if share < RISE:
        return PEAK * (share + 1e-3) / RISE
    return PEAK * 0.5 * (1 + math.cos(math.pi * min(1, share)))


class Run(runs.Run):
    def __init__(self, path, seed, start=None):
        torch.manual_seed(seed)
        model = vil.Vil(ARCH, data.SIDE, len(kinds.LABELS))
        if start:
            model.load_state_dict({name: value.float() for name, value in load_file(start).items()})
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() <= 1]
        optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05},
                                       {"params": vectors, "weight_decay": 0.0}], lr=PEAK)
        super().__init__(path, model, optimizer, slowest=0.998, arch=ARCH)

    def learn(self, values, wanted, learning_rate):
        """One step; the loss and how many were right."""
        logits = self.model(values)
        loss = F.cross_entropy(logits, wanted, label_smoothing=0.05)
        return self.descend(loss, learning_rate), int((logits.argmax(1) == wanted).sum())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=35)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=pathlib.Path, help="a model.safetensors")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    run = Run(options.work / "page-type.pt", options.seed, options.start)
    pixels, labels = data.read(options.work, "train")
    generator = torch.Generator().manual_seed(options.seed + run.step)
    before, began, kept = run.seconds, time.time(), time.time()
    losses, right = [], 0
    while run.seconds < 60 * options.minutes:
        chosen = torch.randint(len(labels), (BATCH,), generator=generator).numpy()
        loss, hits = run.learn(normalised(augmented(pixels_of(pixels[chosen]), generator)),
                               torch.from_numpy(labels[chosen]),
                               rate(run.seconds / (60 * options.minutes)))
        losses.append(loss)
        right += hits
        run.seconds = before + time.time() - began
        if time.time() - kept > SAVE_SECONDS:
            run.save()
            print(f"step {run.step}, {run.seconds:.0f} s, {len(labels)} pictures: loss "
                  f"{np.mean(losses):.3f}, right {right / BATCH / len(losses):.3f}", flush=True)
            pixels, labels = data.read(options.work, "train")
            losses, right, kept = [], 0, time.time()
    run.save()
    print(f"{run.path}: {sum(p.numel() for p in run.model.parameters()):,} parameters, "
          f"{run.step} steps")


if __name__ == "__main__":
    main()
