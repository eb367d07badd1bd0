"""Trains the detector of page parts.

    python train.py --work DIR --steps 26000 [--threads 2] [--bf16] [--device cpu] [--start FILE]

Pages are drawn while it runs, by a pool of processes, and every one is learnt from twice. DIR/page-layout.pt
is written every few minutes and gone on from; the rate falls with the share of the steps taken.
"""

import argparse
import collections
import math
import multiprocessing
import pathlib
import random
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file

import detector
import layouts
import losses

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import run as runs  # noqa: E402

# Pixels as detection pipelines leave them, not divided by 255; paper is nearly zero.
MEAN, STD = (229.5, 229.5, 229.5), (63.75, 63.75, 63.75)
PEAK, SAVE_SECONDS, RISE = 1e-3, 120, 0.03
SMALL_SHARE = 0.65  # Share of the steps: a small page costs a third and shows as much.
KEPT_PAGES = 300  # Drawn lately: one of them is every second page.


def page(seed, size=layouts.SIZE):
    """Pixels [H, W, 3], labels, boxes."""
    image, found = layouts.draw(seed, size=size)
    return (np.asarray(image), np.array([layouts.LABELS.index(label) for label, _ in found]),
            np.array([box for _, box in found], dtype=np.float32).reshape(-1, 4))


def normalised(pictures):
    values = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float()
    mean, std = (torch.tensor(part)[:, None, None] for part in (MEAN, STD))
    return (values - mean) / std


def rate(share):
    return PEAK * min(1, share / RISE + 0.01) * 0.5 * (1 + math.cos(math.pi * min(1, share)))


def stages_of(path):
    """{name: tensor} of a checkpoint of ../page_type, or of the served model made from it."""
    if path.suffix == ".safetensors":
        return {name: value.float() for name, value in load_file(path).items()}
    return torch.load(path, weights_only=True, map_location="cpu")["average"]


class Run(runs.Run):
    def __init__(self, path, device, seed, start=None, bf16=False):
        """`start`: what stages_of reads, to begin with where there is no checkpoint. `bf16`: products
        in 16 bits, losses and weights in 32."""
        torch.manual_seed(seed)
        self.device, self.bf16 = device, bf16
        model = detector.Detector((layouts.SIZE[1], layouts.SIZE[0]), len(layouts.LABELS)).to(device)
        if start:
            print(f"{model.begin_from(stages_of(start))} tensors of {start}", flush=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, weight_decay=0.02)
        super().__init__(path, model, optimizer, slowest=0.999)

    def learn(self, batch, learning_rate):
        """One step; the loss."""
        pictures, labels, boxes = zip(*batch, strict=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            logits, deltas, covers = self.model(normalised(pictures).to(self.device))
        logits, deltas, covers = logits.float(), deltas.float(), [level.float() for level in covers]
        places, total = detector.anchors(*pictures[0].shape[:2]).to(self.device), 0
        for i in range(len(batch)):
            label, box = (torch.from_numpy(part[i]).to(self.device) for part in (labels, boxes))
            found = losses.loss(places, logits[i], deltas[i], label, box)
            total = total + found + sum(losses.cover(level[i], stride, label, box)
                                        for level, stride in zip(covers, detector.STRIDES))
        return self.descend(total / len(batch), learning_rate)


def pages(pool, first, last, batch, small_until):
    """The batches of steps first..last-1: every second one is drawn, while the step before is taken, the
    others are of pages drawn lately."""
    def drawing(step):
        size = layouts.SMALL if step < small_until else layouts.SIZE
        return pool.starmap_async(page, [(step * batch + i, size) for i in range(batch)])

    kept, chosen, waiting = collections.deque(maxlen=KEPT_PAGES), random.Random(first), drawing(first)
    for step in range(first, last):
        if step == small_until:
            kept.clear()
        if (step - first) % 2 and kept:
            yield chosen.choices(kept, k=batch)
            continue
        drawn = waiting.get()
        waiting = drawing(step + 2)
        kept.extend(drawn)
        yield drawn


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=26000)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--start", type=pathlib.Path,
                        help="a checkpoint of ../page_type, or its model.safetensors, to begin with")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--painters", type=int, default=1)
    parser.add_argument("--bf16", action="store_true", help="where the processor multiplies it fast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    run = Run(options.work / "page-layout.pt", options.device, options.seed, options.start, options.bf16)
    before, began, kept, found = run.seconds, time.time(), time.time(), []
    with multiprocessing.get_context("spawn").Pool(options.painters) as pool:
        for batch in pages(pool, run.step, options.steps, options.batch,
                           round(SMALL_SHARE * options.steps)):
            found.append(run.learn(batch, rate(run.step / options.steps)))
            run.seconds = before + time.time() - began
            if time.time() - kept > SAVE_SECONDS:
                run.save()
                print(f"step {run.step}, {run.seconds:.0f} s: loss {np.mean(found):.3f}", flush=True)
                found, kept = [], time.time()
    run.save()
    print(f"{run.path}: {sum(p.numel() for p in run.model.parameters()):,} parameters, "
          f"{run.step} steps, last losses {np.mean(found[-20:]):.3f}")


if __name__ == "__main__":
    main()
