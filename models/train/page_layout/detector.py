"""RetinaNet (Lin et al. 2017) over Vision Longformer's stages, for training; tensors have the names
that the server reads, anchors and codes are those of its definition (models/detection)."""

import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import vil  # noqa: E402

ARCH = ("l1,h2,d48,n1,s1,g1,p8,f8,a0_l2,h3,d96,n2,s1,g1,p2,f8,a0_"
        "l3,h6,d192,n4,s1,g0,p2,f8,a0")
STRIDES = (8, 16, 32, 64, 128)
WIDTH, CONVS = 64, 2
# Lines of text are wide: heights of anchors over their widths.
RATIOS = (0.05, 0.15, 0.45, 1.2)
SIZES = tuple((3.0 * stride, 4.5 * stride) for stride in STRIDES)
ANCHORS = len(RATIOS) * len(SIZES[0])
_LARGEST_STEP = math.log(1000 / 16)


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
    """m_k = lateral(C_k) + up2(m_{k+1}), P_k = output(m_k); two levels above from C_5."""

    def __init__(self, widths):
        super().__init__()
        self.bottom_up = None  # Set by the detector, for the name.
        for level, width in enumerate(widths, 3):
            setattr(self, f"fpn_lateral{level}", nn.Conv2d(width, WIDTH, 1))
            setattr(self, f"fpn_output{level}", nn.Conv2d(WIDTH, WIDTH, 3, 1, 1))
        self.top_block = nn.ModuleDict({"p6": nn.Conv2d(widths[-1], WIDTH, 3, 2, 1),
                                        "p7": nn.Conv2d(WIDTH, WIDTH, 3, 2, 1)})

    def forward(self, maps):
        merged, levels = None, []
        for level in (5, 4, 3):
            lateral = getattr(self, f"fpn_lateral{level}")(maps[level - 3])
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
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)
        nn.init.constant_(self.cls_score.bias, -math.log(99))  # A hundredth is foreground.

    def forward(self, level, classes):
        def flat(x, channels):
            return x.permute(0, 2, 3, 1).reshape(len(x), -1, channels)

        return (flat(self.cls_score(self.cls_subnet(level)), classes),
                flat(self.bbox_pred(self.bbox_subnet(level)), 4))


class Detector(nn.Module):
    """Of images of one size (height, width), whole chunks in every stage."""

    def __init__(self, size, classes):
        super().__init__()
        self.classes = classes
        self.backbone = _Pyramid([stage["d"] for stage in vil.parse(ARCH)])
        self.backbone.bottom_up = vil.Stages(ARCH, size)
        self.head = _Head(classes)
        self.register_buffer("places", anchors(*size), persistent=False)

    def forward(self, x):
        """Normalised pixels -> logits [B, anchors, classes], deltas [B, anchors, 4]."""
        levels = self.backbone(self.backbone.bottom_up.maps(x)[1])
        scores, deltas = zip(*(self.head(level, self.classes) for level in levels), strict=True)
        return torch.cat(scores, 1), torch.cat(deltas, 1)
