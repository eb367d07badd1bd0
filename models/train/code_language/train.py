"""Trains the classifier on crops of the tokenised training documents.

    python train.py --work DIR [--seed 1] [--threads 1]

Reads DIR/train.npz and DIR/model (the tokenizer), writes DIR/checkpoint.pt every few minutes
and goes on from it when started again, with the same batches as without the interruption.

Most steps see short crops from anywhere in a file, because a language shows within a few hundred
tokens; half of them are placed at a random offset of the position table, which so is trained up
to its last row without paying for long documents. The last stages see whole long documents.
"""
import argparse
import pathlib
import time

import numpy
import torch
import torch.nn.functional as F
import transformers

import fast_forward
import model as architecture

# Steps, documents a step, tokens of each.
STAGES = [(1100, 48, 256), (40, 16, 1024), (8, 4, 4096)]
PEAK_RATE, SMOOTHING = 1.5e-3, 0.05
WARMUP, COSINE, COOLDOWN = 100, 1850, 250  # Steps: linear up; the cosine; linear to zero.
FROM_START, SHORTENED, MOVED = 0.5, 0.2, 0.5  # shares of crops
SAVE_EVERY = 20


class Crops:
    """Batches of crops; the batch of a step depends on the seed and the step only."""

    def __init__(self, path, seed):
        data = numpy.load(path)
        self.ids, self.offsets, self.labels = data["ids"], data["offsets"], data["labels"]
        self.seed = seed
        self.by_label = [numpy.flatnonzero(self.labels == label) for label in range(self.labels.max() + 1)]
        weights = numpy.sqrt([len(documents) for documents in self.by_label])
        self.weights = weights / weights.sum()

    def crop(self, document, room, rng):
        begin, end = self.offsets[document], self.offsets[document + 1]
        if rng.random() < SHORTENED:
            room = int(rng.integers(16, room))
        if end - begin > room:
            if rng.random() >= FROM_START:
                begin += rng.integers(end - begin - room + 1)
            end = begin + room
        return self.ids[begin:end].astype(numpy.int64)

    def batch(self, step, size, length):
        rng = numpy.random.default_rng([self.seed, step])
        ids = numpy.full((size, length), 1)
        positions = numpy.tile(numpy.arange(length) + 2, (size, 1))
        lengths, labels = numpy.zeros(size, dtype=int), numpy.zeros(size, dtype=int)
        for row in range(size):
            labels[row] = rng.choice(len(self.weights), p=self.weights)
            crop = self.crop(rng.choice(self.by_label[labels[row]]), length - 2, rng)
            lengths[row] = len(crop) + 2
            ids[row, :lengths[row]] = numpy.concatenate([[0], crop, [2]])
            if rng.random() < MOVED:  # <s> stays first: only what follows it moves.
                positions[row, 1:] += rng.integers(architecture.MAX_LENGTH - length + 1)
        return [torch.from_numpy(a) for a in (ids, lengths, positions, labels)]


def rate(step, steps):
    """Share of the peak rate: up, a cosine that the cooldown cuts short, down to zero."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    cosine = 0.02 + 0.98 * 0.5 * (1 + numpy.cos(numpy.pi * (step - WARMUP) / (COSINE - WARMUP)))
    return cosine * min(1.0, (steps - step) / COOLDOWN)


def schedule():
    return [(size, length) for steps, size, length in STAGES for _ in range(steps)]


def optimizer_of(model):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": 0.02},
                              {"params": others, "weight_decay": 0.0}], lr=PEAK_RATE, betas=(0.9, 0.98))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.work / "model")
    crops = Crops(options.work / "train.npz", options.seed)
    model = architecture.build(len(tokenizer)).train()
    optimizer = optimizer_of(model)
    checkpoint = options.work / "checkpoint.pt"
    begin = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["step"]
    steps = schedule()
    loss_sum, right, seen, started = 0.0, 0, 0, time.time()
    for step in range(begin, len(steps)):
        ids, lengths, positions, labels = crops.batch(step, *steps[step])
        for group in optimizer.param_groups:
            group["lr"] = float(PEAK_RATE * rate(step, len(steps)))
        logits = fast_forward.logits(model, ids, lengths, positions)
        loss = F.cross_entropy(logits, labels, label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss_sum += loss.item() * len(labels)
        right += (logits.argmax(-1) == labels).sum().item()
        seen += len(labels)
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} of {len(steps)}: loss {loss_sum / seen:.3f}, right {right / seen:.3f}, "
                  f"{time.time() - started:.0f} s", flush=True)
            loss_sum, right, seen = 0.0, 0, 0
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == len(steps):
            partial = checkpoint.with_suffix(".tmp")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "step": step + 1}, partial)
            partial.replace(checkpoint)


if __name__ == "__main__":
    main()
