"""Which anchor answers for which box, and what it pays. Anchors that answer are few, and stages that begin
from nothing learn slowly from them: every place also says what covers it."""

import torch
from torch.nn import functional as F

import detector

FOREGROUND, BACKGROUND = 0.5, 0.4
KEPT, NEARLY = 6, 0.7
ALPHA, GAMMA, BETA = 0.25, 2.0, 0.1


def overlaps(a, b):
    """Intersection over union, [len(a), len(b)]."""
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    area = [(x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b)]
    return both / (area[0][:, None] + area[1][None] - both)


def match(places, boxes):
    """Per anchor the index of its box, -1 background, -2 neither. Thin lines fit no anchor well: every
    box keeps its best anchors, as far as they are nearly as good as the very best."""
    if len(boxes) == 0:
        return torch.full((len(places),), -1)
    found = overlaps(places, boxes)
    best, of = found.max(1)
    matched = torch.where(best >= FOREGROUND, of, torch.where(best < BACKGROUND, -1, -2))
    kept, at = found.topk(KEPT, 0)
    index = torch.arange(len(boxes), device=places.device)
    for rank in reversed(range(KEPT)):  # A box's best anchor is the last to be given away.
        near = kept[rank] >= NEARLY * kept[0]
        matched[at[rank, near]] = index[near]
    return matched


def focal(logits, wanted):
    plain = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    sure = torch.sigmoid(logits)
    wrong = torch.where(wanted > 0, 1 - sure, sure)
    weight = torch.where(wanted > 0, ALPHA, 1 - ALPHA)
    return (weight * wrong ** GAMMA * plain).sum()


def loss(places, logits, deltas, labels, boxes):
    """The loss of one image, over the number of its foreground anchors."""
    matched = match(places, boxes)
    foreground = matched >= 0
    counted = matched != -2
    wanted = torch.zeros_like(logits)
    wanted[foreground, labels[matched[foreground]]] = 1
    total = focal(logits[counted], wanted[counted])
    codes = detector.encode(boxes[matched[foreground]], places[foreground])
    total = total + F.smooth_l1_loss(deltas[foreground], codes, beta=BETA, reduction="sum")
    return total / max(1, int(foreground.sum()))


def cover(logits, stride, labels, boxes):
    """A map's [classes + 1, H, W] loss for one image: the mean over kinds of the mean over their
    places, since most of a page is paragraphs and paper."""
    nothing, high, wide = logits.shape[0] - 1, *logits.shape[1:]
    wanted = torch.full((high, wide), nothing, device=logits.device)
    for label, box in zip(labels.tolist(), boxes.tolist(), strict=True):
        x0, y0, x1, y1 = (round(v / stride) for v in box)  # Places whose middle is inside.
        wanted[y0:max(y1, y0 + 1), x0:max(x1, x0 + 1)] = label
    each = F.cross_entropy(logits[None], wanted[None], reduction="none")[0]
    parts = [each[wanted == kind].mean() for kind in wanted.unique()]
    return sum(parts) / len(parts)
