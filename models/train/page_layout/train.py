"""Trains the detector of page parts.

    python train.py --work DIR --minutes 600 [--threads 2] [--device cpu] [--start page-type.pt]

Pages are drawn while it runs, by a pool of processes, never twice. DIR/page-layout.pt is written every
few minutes and gone on from; the rate falls with the share of the minutes used.
"""

import argparse
import math
import multiprocessing
import pathlib
import sys
import time

import numpy as np
import torch

import detector
import layouts
import losses

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import run as runs  # noqa: E402

# Pixels as detection pipelines leave them, not divided by 255; paper is nearly zero.
MEAN, STD = (229.5, 229.5, 229.5), (63.75, 63.75, 63.75)
PEAK, SAVE_SECONDS, RISE = 1e-3, 120, 0.03
SMALL_SHARE = 0.6  # Of the minutes: a small page costs a third and shows as much.


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


class Run(runs.Run):
    def __init__(self, path, device, seed, start=None):
        """`start`: a checkpoint of ../page_type to begin with, where there is none of this."""
        torch.manual_seed(seed)
        self.device = device
        model = detector.Detector((layouts.SIZE[1], layouts.SIZE[0]), len(layouts.LABELS)).to(device)
        if start:
            trained = torch.load(start, weights_only=True, map_location=device)["average"]
            print(f"{model.begin_from(trained)} tensors of {start}", flush=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, weight_decay=0.02)
        super().__init__(path, model, optimizer, slowest=0.999)

    def learn(self, batch, learning_rate):
        """One step; the loss."""
        pictures, labels, boxes = zip(*batch, strict=True)
        logits, deltas, covers = self.model(normalised(pictures).to(self.device))
        places, total = detector.anchors(*pictures[0].shape[:2]).to(self.device), 0
        for i in range(len(batch)):
            label, box = (torch.from_numpy(part[i]).to(self.device) for part in (labels, boxes))
            found = losses.loss(places, logits[i], deltas[i], label, box)
            total = total + found + sum(losses.cover(level[i], stride, label, box)
                                        for level, stride in zip(covers, detector.STRIDES))
        return self.descend(total / len(batch), learning_rate)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--pause-after", type=float, default=math.inf, metavar="MINUTES",
                        help="of this call, to be gone on from by the next")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--start", type=pathlib.Path, help="a checkpoint of ../page_type to begin with")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--painters", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    run = Run(options.work / "page-layout.pt", options.device, options.seed, options.start)
    before, began, kept, found = run.seconds, time.time(), time.time(), []
    with multiprocessing.get_context("spawn").Pool(options.painters) as pool:
        def drawing(step):
            first = step * options.batch
            size = layouts.SMALL if run.seconds < SMALL_SHARE * 60 * options.minutes else layouts.SIZE
            return pool.starmap_async(page, [(first + i, size) for i in range(options.batch)])

        waiting = drawing(run.step)
        end = min(60 * options.minutes, before + 60 * options.pause_after)
        while run.seconds < end:
            batch = waiting.get()
            learning_rate = rate(run.seconds / (60 * options.minutes))
            waiting = drawing(run.step + 1)  # While this step is taken.
            found.append(run.learn(batch, learning_rate))
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
