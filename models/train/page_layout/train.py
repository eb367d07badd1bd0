"""Trains the detector of page parts.

    python train.py --work DIR --minutes 75 [--documents DIR] [--start DIR] [--threads 1] [--bf16] [--device cpu]

Four fifths of what it sees are windows of the rendered documents of ../documents, if there are some, the others are
pages drawn while it runs. DIR/page-layout.pt is written every few minutes and gone on from; the rate falls with the
share of the minutes used. `--start` begins with a served detector (models/zoo/page-layout) or with what a
classifier of ../page_type learned.
"""

import argparse
import collections
import json
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
import samples

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import run as runs  # noqa: E402

# Pixels as detection pipelines leave them, not divided by 255; paper is nearly zero.
MEAN, STD = (229.5, 229.5, 229.5), (63.75, 63.75, 63.75)
PEAK, SAVE_SECONDS, RISE = 8e-4, 120, 0.02
# Windows as wide as pages and half as high cost half of a page, and show as much in their pixels.
PART, PART_SHARE = (1024, 512), 0.6
SIZES = (layouts.SIZE,) * 4 + (layouts.SIZE[::-1],)
AHEAD, KEPT = 3, 64  # Windows being made, and those that are shown again if none is ready.
COVER = 0.5


def normalised(pictures):
    values = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float()
    mean, std = (torch.tensor(part)[:, None, None] for part in (MEAN, STD))
    return (values - mean) / std


def rate(share):
    return PEAK * min(1, share / RISE + 0.01) * 0.5 * (1 + math.cos(math.pi * min(1, share)))


def begin(model, path):
    """Takes over what `path` holds, a served detector's directory or a classifier; how many tensors."""
    if path.is_dir():
        labels = json.loads((path / "config.json").read_text())["id2label"]
        return model.go_on_from(stages_of(path / "model.safetensors"), list(labels.values()), layouts.LABELS)
    return model.begin_from(stages_of(path))


def stages_of(path):
    """{name: tensor} of a checkpoint of ../page_type, or of a served model."""
    if path.suffix == ".safetensors":
        return {name: value.float() for name, value in load_file(path).items()}
    return torch.load(path, weights_only=True, map_location="cpu")["average"]


class Run(runs.Run):
    def __init__(self, path, device, seed, start=None, bf16=False):
        """`start`: what `begin` reads, to begin with where there is no checkpoint. `bf16`: products
        in 16 bits, losses and weights in 32."""
        torch.manual_seed(seed)
        self.device, self.bf16 = device, bf16
        model = detector.Detector((layouts.SIZE[1], layouts.SIZE[0]), len(layouts.LABELS)).to(device)
        if start:
            print(f"{begin(model, start)} tensors of {start}", flush=True)
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
            total = total + found + COVER * sum(losses.cover(level[i], stride, label, box)
                                        for level, stride in zip(covers, detector.STRIDES))
        return self.descend(total / len(batch), learning_rate)


def batches(pool, run, minutes, batch):
    """Batches of windows for as long as the minutes last: what the pool has made, or one of those again."""
    kept, waiting, made = collections.deque(maxlen=KEPT), collections.deque(), 0
    rng = random.Random(run.step)
    while run.seconds < 60 * minutes:
        part = run.seconds < PART_SHARE * 60 * minutes
        while len(waiting) < AHEAD:
            size = PART if part else rng.choice(SIZES)
            seeds = [(run.step * 1000 + made) * batch + i for i in range(batch)]
            waiting.append((part, pool.starmap_async(samples.take, [(seed, size) for seed in seeds])))
            made += 1
        right = [one for was, one in kept if was == part]
        if right and not waiting[0][1].ready():
            yield rng.choice(right)
            continue
        was, found = waiting.popleft()
        kept.append((was, found.get()))
        yield kept[-1][1]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--documents", type=pathlib.Path, help="what ../documents/render.py wrote")
    parser.add_argument("--minutes", type=float, default=75)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--start", type=pathlib.Path, help="a served detector, or a checkpoint of ../page_type")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--painters", type=int, default=1)
    parser.add_argument("--bf16", action="store_true", help="where the processor multiplies it fast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    run = Run(options.work / "page-layout.pt", options.device, options.seed, options.start, options.bf16)
    before, began, kept, found = run.seconds, time.time(), time.time(), []
    folder = options.documents / "train" if options.documents else None
    with multiprocessing.get_context("spawn").Pool(options.painters, samples.begin, (folder,)) as pool:
        for batch in batches(pool, run, options.minutes, options.batch):
            found.append(run.learn(batch, rate(run.seconds / (60 * options.minutes))))
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
