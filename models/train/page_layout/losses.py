"""Which anchors answer for which box, and what they pay. Anchors are chosen by what they predict now (task-aligned
assignment, Feng et al. 2021) among those that fit best by shape; scores learn how well their boxes overlap
(varifocal loss, Zhang et al. 2021), boxes the generalized overlap itself (GIoU, Rezatofighi et al. 2019).
Anchors that answer are few: every place of the lower maps also says what covers it."""

import torch
from torch.nn import functional as F

import detector

FITTING, NEARLY, KEPT = 64, 0.5, 8  # Anchors of a box by shape, how nearly as well as the best, and by prediction.
ALPHA, GAMMA = 0.75, 2.0
BOX_WEIGHT = 2.0


def overlaps(a, b):
    """Intersection over union, [len(a), len(b)]."""
    both, area = None, [(x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b)]
    for axis in (0, 1):
        low = torch.maximum(a[:, None, axis], b[None, :, axis])
        side = (torch.minimum(a[:, None, axis + 2], b[None, :, axis + 2]) - low).clamp_(min=0)
        both = side if both is None else both.mul_(side)
    return both / (area[0][:, None] + area[1][None] - both)


def _pairs(a, b):
    """Intersection over union and the share of the common hull that neither covers, of boxes [..., 4] in pairs."""
    both = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).clamp(min=1e-3).prod(-1)
    union = sum((x[..., 2:] - x[..., :2]).clamp(min=0).prod(-1) for x in (a, b)) - both
    return both / union.clamp(min=1e-3), (hull - union) / hull


@torch.no_grad()
def assign(fits, at, labels, scores, overlap):
    """(anchors that answer, the box of each, how well it should score): `fits`, `at` and `overlap` [FITTING, boxes]
    are how the anchors of each box fit by shape, which they are, and how well they predict it now; `scores`
    [n, classes] what all n anchors say."""
    metric = scores[at, labels.expand_as(at)].clamp(min=1e-3).sqrt() * overlap.clamp(min=0.02) ** 3
    metric, rank = (metric * fits.clamp(min=0.02)).topk(min(KEPT, len(metric)), 0)
    at, overlap = at.gather(0, rank), overlap.gather(0, rank)
    wanted = metric / metric.amax(0) * overlap.amax(0).clamp(min=0.1)
    anchors, pair = _for_one_box(at, wanted, len(scores))
    return anchors, pair % at.shape[1], wanted.flatten()[pair]


def _for_one_box(at, weight, count):
    """(anchors, where in the flat `at` each is): an anchor that several boxes want is for the one with most weight."""
    order = weight.flatten().argsort()
    chosen = torch.full((count,), -1)
    chosen[at.flatten()[order]] = order
    anchors = (chosen >= 0).nonzero()[:, 0]
    return anchors, chosen[anchors]


def loss(places, logits, deltas, labels, boxes):
    """The loss of one image. Few anchors should score, but many learn where the edges are: all that fit a box nearly
    as well as the best."""
    scores, target = torch.sigmoid(logits), torch.zeros_like(logits)
    bounds, total = torch.zeros(()), 1.0
    if len(boxes):
        fits, at = overlaps(places, boxes).topk(min(FITTING, len(places)), 0)
        of = torch.arange(len(boxes)).expand_as(at)
        predicted = detector.decode(deltas[at.flatten()], places[at.flatten()]).unflatten(0, at.shape)
        overlap, apart = _pairs(predicted, boxes[of])
        anchors, which, wanted = assign(fits, at, labels, scores.detach(), overlap.detach())
        target[anchors, labels[which]] = wanted
        total = float(wanted.sum().clamp(min=1))
        _, pair = _for_one_box(at, fits, len(places))
        share = (fits / fits[0] * (fits > NEARLY * fits[0])).flatten()[pair]
        bounds = (share * (1 - overlap + apart).flatten()[pair]).sum() / share.sum().clamp(min=1)
    weight = torch.where(target > 0, target, ALPHA * scores.detach() ** GAMMA)
    found = F.binary_cross_entropy_with_logits(logits, target, weight, reduction="sum")
    return found / total + BOX_WEIGHT * bounds


def cover(logits, stride, labels, boxes):
    """A map's [classes + 1, H, W] loss for one image: the mean over kinds of the mean over their
    places, since most of a page is paragraphs and paper."""
    nothing = logits.shape[0] - 1
    high, wide = logits.shape[1:]
    wanted = torch.full((high, wide), nothing, device=logits.device)
    for label, box in zip(labels.tolist(), boxes.tolist(), strict=True):
        x0, y0, x1, y1 = (round(v / stride) for v in box)  # Places whose middle is inside.
        wanted[y0:max(y1, y0 + 1), x0:max(x1, x0 + 1)] = label
    each = F.cross_entropy(logits[None], wanted[None], reduction="none")[0]
    parts = [each[wanted == kind].mean() for kind in wanted.unique()]
    return sum(parts) / len(parts)
