"""Trains the encoder: questions find their pieces among those of the batch.

    python train.py --work DIR [--seed 1] [--threads 1] [--whole 1500]

First the table of word vectors alone, in large batches; then all, pieces with the text around them,
as late chunking reads them. A batch holds groups of pairs of one package each: a search is among
pieces that are much alike. Writes DIR/checkpoint.pt now and then and goes on from it.
"""
import argparse
import pathlib
import time

import numpy
import torch
import torch.nn.functional as F

import model as architecture
import train_tokenizer
from recall import recall

# Steps, pairs of a step, peak rates of the table and of the rest.
STATIC = (400, 1024, 0.03, 2e-3)
WHOLE = (256, 2e-3, 1e-3)  # Without steps, which are a flag.
GROUP = 64  # Pairs of one package in a batch.
WARMUP, SAVE_EVERY, REPORT_EVERY = 30, 50, 10
SHORT_PIECE, SHORT_CONTEXT = 96, 24  # Tokens that the second part reads.
# The table's training leaves words out of questions and pieces, and takes some words of a piece for
# its question. Without that it learns the pairs by heart.
QUESTION_DROP, PIECE_DROP, WORDS_SHARE = 0.1, 0.3, 0.2
DEVELOPMENT = 12  # Packages of the training data that are watched instead.


class Pairs:
    def __init__(self, path):
        data = numpy.load(path)
        self.questions, self.question_ends = data["questions"].astype(numpy.int64), data["questions_ends"]
        self.pieces, self.piece_ends = data["pieces"].astype(numpy.int64), data["pieces_ends"]
        self.places = data["places"]
        names, self.package = numpy.unique(data["packages"], return_inverse=True)
        counts = numpy.bincount(self.package)
        middling = [p for p in range(len(names)) if 300 <= counts[p] <= 2500]
        rng = numpy.random.default_rng(7)
        watched = set(rng.choice(middling, min(DEVELOPMENT, len(middling) // 4), replace=False).tolist())
        self.watched = {names[p]: numpy.flatnonzero(self.package == p) for p in sorted(watched)}
        self.members = [numpy.flatnonzero(self.package == p) for p in range(len(names)) if p not in watched]
        weights = numpy.array([len(m) for m in self.members]) ** 0.7
        self.weights = weights / weights.sum()

    def question(self, i):
        ids = self.questions[self.question_ends[i]:self.question_ends[i + 1]]
        return numpy.concatenate([[architecture.CLS, architecture.QUESTION], ids])

    def piece(self, i, longest=10**6, context=0):
        """(ids, first, behind): the piece with tokens around it."""
        begin = self.piece_ends[i]
        first, behind = self.places[i]
        behind = min(behind, first + longest)
        low = max(0, first - context)
        high = min(self.piece_ends[i + 1] - begin, behind + context)
        return self.pieces[begin + low:begin + high], first - low, behind - low

    def batch(self, rng, size):
        """Pairs in groups, each of one package."""
        chosen = []
        while len(chosen) < size:
            members = self.members[rng.choice(len(self.members), p=self.weights)]
            count = min(GROUP, len(members), size - len(chosen))
            chosen.extend(rng.choice(members, count, replace=False))
        return list(dict.fromkeys(chosen))

    def rarity(self, vocabulary):
        """0 to 1 for each id, by the share of the pieces that have it."""
        having = numpy.zeros(vocabulary)
        count = len(self.places)
        for i in range(count):
            having[numpy.unique(self.piece(i)[0])] += 1
        idf = numpy.log((count + 1) / (having + 1)) / numpy.log(count + 1)
        return torch.from_numpy(numpy.clip(idf, 0.05, 1.0)).float()


def thinned(ids, share, rng):
    kept = ids[rng.random(len(ids)) >= share]
    return kept if len(kept) else ids


def thinned_rows(pairs, chosen, rng):
    """Questions and pieces with words left out."""
    questions, pieces = [], []
    for i in chosen:
        begin, question, piece = pairs.question(i)[:2], pairs.question(i)[2:], pairs.piece(i)[0]
        question = thinned(question, QUESTION_DROP, rng)
        if rng.random() < WORDS_SHARE and len(piece) > 20:
            words = rng.choice(len(piece), int(rng.integers(3, 10)), replace=False)
            question = piece[words]
            if rng.random() < 0.5:
                piece = numpy.delete(piece, words)
        questions.append(numpy.concatenate([begin, question]))
        pieces.append(thinned(piece, PIECE_DROP, rng))
    return questions, pieces


def bags(rows):
    ends = numpy.cumsum([0, *map(len, rows)])
    return torch.from_numpy(numpy.concatenate(rows)), torch.from_numpy(ends[:-1])


def padded(rows):
    """rows: (ids, first, behind). What Encoder.forward takes."""
    length = max(len(ids) for ids, _, _ in rows)
    ids = numpy.full((len(rows), length), architecture.PAD)
    pooled = numpy.zeros((len(rows), length), dtype=numpy.float32)
    for row, (own, first, behind) in enumerate(rows):
        ids[row, :len(own)] = own
        pooled[row, first:behind] = 1
    return torch.from_numpy(ids), torch.tensor([len(own) for own, _, _ in rows]), torch.from_numpy(pooled)


def whole_vectors(model, rows, at_once=64):
    """Rows of like length together: less padding."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
    with torch.autocast("cpu", torch.bfloat16):
        parts = [model(*padded([rows[i] for i in order[at:at + at_once]])).float()
                 for at in range(0, len(rows), at_once)]
    back = numpy.empty(len(rows), dtype=numpy.int64)
    back[order] = numpy.arange(len(rows))
    return torch.cat(parts)[torch.from_numpy(back)]


def question_rows(pairs, chosen):
    rows = [pairs.question(i) for i in chosen]
    return [(ids, 0, len(ids)) for ids in rows]


def vectors(model, pairs, chosen, whole, rng=None):
    if not whole:
        questions, pieces = thinned_rows(pairs, chosen, rng) if rng else \
            ([pairs.question(i) for i in chosen], [pairs.piece(i)[0] for i in chosen])
        return model.static(*bags(questions)), model.static(*bags(pieces))
    contexts = rng.choice([0, SHORT_CONTEXT], len(chosen)) if rng else [SHORT_CONTEXT] * len(chosen)
    longest = SHORT_PIECE if rng else train_tokenizer.LONGEST_PIECE
    pieces = [pairs.piece(i, longest, context) for i, context in zip(chosen, contexts)]
    return whole_vectors(model, question_rows(pairs, chosen)), whole_vectors(model, pieces)


def loss_of(model, questions, pieces):
    scores = questions @ pieces.T * model.scale.exp().clamp(max=60.0)
    wanted = torch.arange(len(scores))
    return (F.cross_entropy(scores, wanted) + F.cross_entropy(scores.T, wanted)) / 2


@torch.no_grad()
def watch(model, pairs, whole):
    found = []
    for chosen in pairs.watched.values():
        questions, pieces = vectors(model, pairs, chosen, whole)
        found.extend(recall((questions @ pieces.T).numpy(), numpy.arange(len(chosen))))
    return float(numpy.mean(found))


def optimizer_of(model):
    table = model.embeddings.tok_embeddings.weight
    rest = [p for p in model.parameters() if p is not table]
    return torch.optim.AdamW([{"params": [table]}, {"params": rest}], lr=0.0, betas=(0.9, 0.98),
                             weight_decay=0.0)


def part_of(step, whole_steps):
    """(whole, step within the part, steps, pairs, rates)"""
    whole = step >= STATIC[0]
    steps, size, *rates = (whole_steps, *WHOLE) if whole else STATIC
    return whole, step - (STATIC[0] if whole else 0), steps, size, rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--whole", type=int, default=0, help="steps of the second part; 0 = the table alone")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    pairs = Pairs(options.work / "train.npz")
    vocabulary = train_tokenizer.VOCABULARY
    model = architecture.Encoder(vocabulary)
    checkpoint, begin = options.work / "checkpoint.pt", 0
    optimizer = optimizer_of(model)
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["step"]
    else:
        model.begin_with(pairs.rarity(vocabulary))
    print(f"{len(pairs.places)} pairs; watched: {', '.join(pairs.watched)}; recall@10 at first "
          f"{watch(model, pairs, False):.3f}", flush=True)
    started, losses = time.time(), []
    total = STATIC[0] + options.whole
    for step in range(begin, total):
        whole, own, steps, size, rates = part_of(step, options.whole)
        if whole and own == 0:
            optimizer = optimizer_of(model)
        share = min((own + 1) / WARMUP, 0.5 + 0.5 * numpy.cos(numpy.pi * own / steps))
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = float(rate * share)
        rng = numpy.random.default_rng([options.seed, step])
        loss = loss_of(model, *vectors(model, pairs, pairs.batch(rng, size), whole, rng))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        done = step + 1
        if done % REPORT_EVERY == 0:
            print(f"step {done} of {total}: loss {numpy.mean(losses):.3f}, {time.time() - started:.0f} s",
                  flush=True)
            losses = []
        if done % SAVE_EVERY == 0 or done in (STATIC[0], total):
            print(f"  watched: recall@10 {watch(model, pairs, whole):.3f}, scale "
                  f"{model.scale.exp().item():.1f}", flush=True)
            partial = checkpoint.with_suffix(".tmp")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done},
                       partial)
            partial.replace(checkpoint)


if __name__ == "__main__":
    main()
