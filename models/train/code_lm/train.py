"""Trains the language model on crops of the training documents.

    python train.py --work DIR [--until STEP] [--cooldown STEPS] [--seed 1] [--threads 1]
                    [--device cpu] [--config JSON] [--widen 1]

Reads DIR/code-lm/train.npz, writes DIR/code-lm/checkpoint.pt every few minutes and goes on from
it when started again, with the same batches as without the interruption. The learning rate stays
at its peak after the warm-up, so training may stop anywhere; --cooldown takes the checkpoint
through STEPS more with a rate that falls to zero, into DIR/code-lm/cooled.pt, which export.py
reads. The checkpoint itself stays as it is: training may go on from it, and be cooled again.
SIGTERM ends a run after saving. Weights are kept in fp32 and rounded to bf16 for a step (fast.py).
--config changes the sizes of model.Config and --widen multiplies the documents of a step, for a
GPU; a checkpoint knows both, and they count for a new one only.
"""
import argparse
import copy
import dataclasses
import json
import math
import os
import pathlib
import signal
import time

import torch
import torch.nn.functional as F

import documents
import fast
import model as architecture

# First step, documents a step, bytes of each: the far memory grows with the texts.
STAGES = [(0, 16, 512), (250, 8, 512), (900, 4, 1024)]
MATRIX_RATE, OTHER_RATE, WARMUP = 5e-3, 5e-3, 60
DECAY, CLIP = 0.01, 1.0
SAVE_SECONDS = 120


def optimizers_of(model):
    """Muon for the matrices of the layers, AdamW for the embedding, the tables and the vectors."""
    matrices, others = [], []
    for name, parameter in model.named_parameters():
        own = ("proj_", "fc1.weight", "fc2.weight")
        (matrices if parameter.dim() == 2 and any(o in name for o in own) else others).append(parameter)
    return [torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=DECAY,
                             adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.98), weight_decay=0.0)]


def shape(step, widen):
    """Documents and bytes of each."""
    size, length = next(stage[1:] for stage in reversed(STAGES) if stage[0] <= step)
    return size * widen, length


class Run:
    """Model, optimizers and the step they are at, on disk as well; a copy in bf16 computes the gradients."""

    def __init__(self, config, seed, widen, device):
        torch.manual_seed(seed)
        self.seed, self.widen, self.step, self.cooled = seed, widen, 0, 0
        self.device = device
        self.model = fast.silence(architecture.TransformerLS(config).initialize()).to(device)
        self.optimizers = optimizers_of(self.model)
        self.plan = fast.Plan(config, self.model.inv_freq)
        self.copy = copy.deepcopy(self.model).bfloat16()

    @classmethod
    def restored(cls, path, device):
        saved = torch.load(path, map_location=device)
        run = cls(architecture.Config(**saved["config"]), saved["seed"], saved["widen"], device)
        run.model.load_state_dict(saved["model"])
        for optimizer, state in zip(run.optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
        run.step, run.cooled = saved["step"], saved["cooled"]
        return run

    def save(self, path):
        partial = path.with_suffix(".tmp")
        torch.save({"model": self.model.state_dict(), "config": dataclasses.asdict(self.model.config),
                    "optimizers": [o.state_dict() for o in self.optimizers], "seed": self.seed,
                    "widen": self.widen, "step": self.step, "cooled": self.cooled}, partial)
        os.replace(partial, path)

    def advance(self, corpus, share):
        """One step at `share` of the peak rates; the mean loss of its bytes in bits."""
        rows = corpus.batch(self.seed, self.step, *shape(self.step, self.widen))
        ids = torch.from_numpy(rows).to(self.device)
        pairs = list(zip(self.model.parameters(), self.copy.parameters()))
        with torch.no_grad():
            for exact, rounded in pairs:
                rounded.copy_(exact)
        logits = fast.logits(self.copy, self.plan, ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        for exact, rounded in pairs:
            exact.grad, rounded.grad = rounded.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        for optimizer, rate in zip(self.optimizers, (MATRIX_RATE, OTHER_RATE)):
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        return loss.item() / math.log(2)


def train(run, corpus, path, until, cooldown):
    started = saved = time.time()
    losses, stop = [], []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    while not stop and (run.cooled < cooldown if cooldown else run.step < until):
        share = min(1.0, (run.step + 1) / WARMUP)
        if cooldown:
            share *= 1 - run.cooled / cooldown
            run.cooled += 1
        losses.append(run.advance(corpus, share))
        if run.step % 50 == 0:
            print(f"step {run.step}, {shape(run.step - 1, run.widen)}: "
                  f"{sum(losses) / len(losses):.3f} bits per byte, {time.time() - started:.0f} s, "
                  f"{time.process_time():.0f} s of CPU", flush=True)
            losses = []
        if time.time() - saved > SAVE_SECONDS:
            run.save(path)
            saved = time.time()
    run.save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--until", type=int, default=1 << 40)
    parser.add_argument("--cooldown", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--config", type=json.loads, default={})
    parser.add_argument("--widen", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = True
    folder = options.work / "code-lm"
    checkpoint, cooled = folder / "checkpoint.pt", folder / "cooled.pt"
    path = cooled if options.cooldown else checkpoint
    found = [file for file in (path, checkpoint) if file.exists()]
    if found:
        run = Run.restored(found[0], options.device)
    else:
        run = Run(architecture.Config(**options.config), options.seed, options.widen, options.device)
    train(run, documents.Corpus(folder / "train.npz"), path, options.until, options.cooldown)


if __name__ == "__main__":
    main()
