"""RetinaNet (Lin et al. 2017) over Vision Longformer's stages, for training; tensors have the names
that the server reads, anchors and codes are those of its definition (models/detection)."""

import functools
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import vil  # noqa: E402

ARCH = ("l1,h3,d96,n1,s1,g1,p16,f4,a0_l2,h6,d192,n3,s1,g1,p2,f4,a0_"
        "l3,h6,d192,n2,s1,g0,p2,f4,a0")
STAGES = 3  # All their maps enter the pyramid.
STRIDES = (16, 32, 64, 128, 256)
WIDTH, CONVS = 64, 2
# Lines of text are wide: heights of anchors over their widths.
RATIOS = (0.05, 0.15, 0.45, 1.2)
SIZES = tuple((3.0 * stride, 5.2 * stride) for stride in STRIDES)
ANCHORS = len(RATIOS) * len(SIZES[0])
_LARGEST_STEP = math.log(1000 / 16)


@functools.lru_cache(4)
def anchors(height, width):
    """[n, 4] of all levels: by row, column, size, ratio."""
    found = []
    for stride, sizes in zip(STRIDES, SIZES, strict=True):
        cell = []
        for size in sizes:
            for ratio in RATIOS:
                wide = math.sqrt(size * size / ratio)
                cell.append([-wide / 2, -ratio * wide / 2, wide / 2, ratio * wide / 2])
        y, x = torch.meshgrid(torch.arange(-(-height // stride)) * stride,
                              torch.arange(-(-width // stride)) * stride, indexing="ij")
        places = torch.stack([x, y, x, y], -1).reshape(-1, 1, 4)
        found.append((places + torch.tensor(cell)).reshape(-1, 4))
    return torch.cat(found)


def encode(boxes, reference):
    """(dx, dy, dw, dh) of boxes relative to reference boxes."""
    size, wanted = reference[:, 2:] - reference[:, :2], boxes[:, 2:] - boxes[:, :2]
    middle = (boxes[:, :2] + boxes[:, 2:] - reference[:, :2] - reference[:, 2:]) / 2
    return torch.cat([middle / size, torch.log(wanted.clamp(min=1) / size)], 1)


def decode(deltas, reference):
    size = reference[:, 2:] - reference[:, :2]
    middle = (reference[:, :2] + reference[:, 2:]) / 2 + deltas[:, :2] * size
    half = size * torch.exp(deltas[:, 2:].clamp(max=_LARGEST_STEP)) / 2
    return torch.cat([middle - half, middle + half], 1)


class _Pyramid(nn.Module):
    """m_k = lateral(C_k) + up2(m_{k+1}), P_k = output(m_k); k is the stride's logarithm. Two levels above
    from the last map, by their published names."""

    def __init__(self, widths):
        super().__init__()
        self.bottom_up = None  # Set by the detector, for the name.
        self.lowest = STRIDES[0].bit_length() - 1
        for level, width in enumerate(widths, self.lowest):
            setattr(self, f"fpn_lateral{level}", nn.Conv2d(width, WIDTH, 1))
            setattr(self, f"fpn_output{level}", nn.Conv2d(WIDTH, WIDTH, 3, 1, 1))
        self.top_block = nn.ModuleDict({"p6": nn.Conv2d(widths[-1], WIDTH, 3, 2, 1),
                                        "p7": nn.Conv2d(WIDTH, WIDTH, 3, 2, 1)})

    def forward(self, maps):
        merged, levels = None, []
        for level in reversed(range(self.lowest, self.lowest + len(maps))):
            lateral = getattr(self, f"fpn_lateral{level}")(maps[level - self.lowest])
            merged = lateral if merged is None else lateral + F.interpolate(merged, scale_factor=2)
            levels.insert(0, getattr(self, f"fpn_output{level}")(merged))
        levels.append(self.top_block["p6"](maps[-1]))
        levels.append(self.top_block["p7"](F.relu(levels[-1])))
        return levels


class _Head(nn.Module):
    def __init__(self, classes):
        super().__init__()
        for tower in ("cls_subnet", "bbox_subnet"):
            convs = []
            for _ in range(CONVS):
                convs += [nn.Conv2d(WIDTH, WIDTH, 3, 1, 1), nn.ReLU()]
            setattr(self, tower, nn.Sequential(*convs))
        self.cls_score = nn.Conv2d(WIDTH, ANCHORS * classes, 3, 1, 1)
        self.bbox_pred = nn.Conv2d(WIDTH, ANCHORS * 4, 3, 1, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)
        for module in (self.cls_score, self.bbox_pred):
            nn.init.normal_(module.weight, std=0.01)
        nn.init.constant_(self.cls_score.bias, -math.log(99))  # A hundredth is foreground.

    def forward(self, level, classes):
        def flat(x, channels):
            return x.permute(0, 2, 3, 1).reshape(len(x), -1, channels)

        return (flat(self.cls_score(self.cls_subnet(level)), classes),
                flat(self.bbox_pred(self.bbox_subnet(level)), 4))


class Detector(nn.Module):
    """Places of images of whole chunks in every stage, like those of `size` (height, width)."""

    def __init__(self, size, classes):
        super().__init__()
        self.classes = classes
        self.backbone = _Pyramid([stage["d"] for stage in vil.parse(ARCH)])
        self.backbone.bottom_up = vil.Stages(ARCH, size)
        self.head = _Head(classes)
        # For training alone: what covers each place of the maps that carry positions.
        self.cover = nn.Conv2d(WIDTH, classes + 1, 1)
        nn.init.normal_(self.cover.weight, std=0.01)

    def forward(self, x):
        """Normalised pixels -> logits [B, anchors, classes], deltas [B, anchors, 4], and per stage of the
        pyramid the logits [B, classes + 1, H, W] of what covers a place, nothing last."""
        levels = self.backbone(self.backbone.bottom_up.maps(x)[1])
        scores, deltas = zip(*(self.head(level, self.classes) for level in levels), strict=True)
        covers = [self.cover(level) for level in levels[:STAGES]]
        return torch.cat(scores, 1), torch.cat(deltas, 1), covers

    def go_on_from(self, served, labels, mine):
        """Takes over the tensors {name: tensor} of a served detector with other `labels` than `mine`: a label
        that it lacks begins unlearned. How many tensors."""
        rows = [(mine.index(label), i) for i, label in enumerate(labels) if label in mine]
        found = dict(served)
        for name in ("head.cls_score.weight", "head.cls_score.bias"):
            learned = found[name].unflatten(0, (ANCHORS, len(labels)))
            grown = self.state_dict()[name].clone().unflatten(0, (ANCHORS, len(mine)))
            for to, of in rows:
                grown[:, to] = learned[:, of]
            found[name] = grown.flatten(0, 1)
        self.load_state_dict(found, strict=False)
        return len(found)

    def begin_from(self, classifier):
        """Takes over what a classifier's stages {name: tensor} share with these; how many tensors. Its
        patches are half as wide: its second stage is the first here."""
        mine, taken = self.backbone.bottom_up.state_dict(), {}
        for name, value in classifier.items():
            if not name.startswith("layer"):
                continue
            name = f"layer{int(name[5]) - 1}{name[6:]}"
            if ".qkv." in name:  # Attention over a whole map has its projections in one.
                d = value.shape[0] // 3
                parts = {name.replace("qkv", "query"): value[:d], name.replace("qkv", "kv"): value[d:]}
            else:
                parts = {name: value}
            taken |= {k: v for k, v in parts.items() if k in mine and mine[k].shape == v.shape}
        self.backbone.bottom_up.load_state_dict(taken, strict=False)
        return len(taken)
