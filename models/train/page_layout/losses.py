"""Which anchor answers for which box, and what it pays."""

import torch
from torch.nn import functional as F

import detector

FOREGROUND, BACKGROUND = 0.5, 0.4
ALPHA, GAMMA, BETA = 0.25, 2.0, 0.1


def overlaps(a, b):
    """Intersection over union, [len(a), len(b)]."""
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    area = [(x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b)]
    return both / (area[0][:, None] + area[1][None] - both)


def match(places, boxes):
    """Per anchor the index of its box, -1 background, -2 neither; every box keeps its best anchor."""
    if len(boxes) == 0:
        return torch.full((len(places),), -1)
    found = overlaps(places, boxes)
    best, of = found.max(1)
    matched = torch.where(best >= FOREGROUND, of, torch.where(best < BACKGROUND, -1, -2))
    matched[found.argmax(0)] = torch.arange(len(boxes), device=places.device)
    return matched


def focal(logits, wanted):
    plain = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    sure = torch.sigmoid(logits)
    wrong = torch.where(wanted > 0, 1 - sure, sure)
    weight = torch.where(wanted > 0, ALPHA, 1 - ALPHA)
    return (weight * wrong ** GAMMA * plain).sum()


def loss(places, logits, deltas, labels, boxes):
    """Of one image, over the number of its foreground anchors."""
    matched = match(places, boxes)
    foreground = matched >= 0
    counted = matched != -2
    wanted = torch.zeros_like(logits)
    wanted[foreground, labels[matched[foreground]]] = 1
    total = focal(logits[counted], wanted[counted])
    codes = detector.encode(boxes[matched[foreground]], places[foreground])
    total = total + F.smooth_l1_loss(deltas[foreground], codes, beta=BETA, reduction="sum")
    return total / max(1, int(foreground.sum()))
