"""Common parts of the forward passes. A model is a dictionary of tensors by the names that the
server reads, and a function of them: nothing has to be renamed when it is exported.

Batches are padded [B, T] ids; `real` [B, T] says which are tokens.
"""

import re

import torch
from torch import nn
from torch.nn import functional as F

_ONES = re.compile(r"(norm|norm\d|LayerNorm|dual_ln_[ls])\.weight$", re.IGNORECASE)
_TABLES = re.compile(r"(embeddings?|embed_\w+|cls_embed|projected_embeddings)(\.weight)?$")


def initial(name, shape, generator):
    """Norms pass through, biases are zero, tables and matrices normal."""
    if _ONES.search(name):
        return torch.ones(shape)
    if name.endswith("bias"):
        return torch.zeros(shape)
    scale = 0.02 if _TABLES.search(name) else shape[-1] ** -0.5
    return torch.randn(shape, generator=generator) * scale


class Classifier(nn.Module):
    """A family's tensors, trained together."""

    def __init__(self, family, config, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.family, self.config = family, config
        self.names = sorted(family.shapes(config))
        self.values = nn.ParameterList(
            nn.Parameter(initial(name, family.shapes(config)[name], generator))
            for name in self.names)

    def tensors(self):
        return dict(zip(self.names, self.values, strict=True))

    def forward(self, ids, real):
        """Logits [B, labels]."""
        return self.family.logits(self.config, Tensors(self.tensors()), ids, real)


class Tensors:
    """Layers by name."""

    def __init__(self, tensors):
        self.tensors = tensors

    def __getitem__(self, name):
        return self.tensors[name]

    def dense(self, name, x):
        return F.linear(x, self.tensors[name + ".weight"], self.tensors.get(name + ".bias"))

    def norm(self, name, x, eps=1e-5):
        return F.layer_norm(x, x.shape[-1:], self.tensors[name + ".weight"],
                            self.tensors[name + ".bias"], eps)


def split_heads(x, heads):
    """[..., n, d] -> [..., heads, n, d / heads]."""
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def join_heads(x):
    return x.transpose(-3, -2).flatten(-2)


def attend(q, k, v, seen):
    """Scaled attention; `seen` broadcasts to [..., queries, keys]. Who sees nothing gets zeros."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    weights = torch.softmax(scores.masked_fill(~seen, -1e9), -1)
    return (weights * seen.any(-1, keepdim=True)) @ v


def pad_to(x, multiple, value=0):
    """Pads dimension 1 on the right."""
    missing = -x.shape[1] % multiple
    return F.pad(x, (0, 0) * (x.dim() - 2) + (0, missing), value=value) if missing else x


def neighbours(x, width, reach, value=0):
    """[..., T, c] -> [..., T / width, width + 2 reach, c]: groups with what lies beside them."""
    padded = F.pad(x, (0, 0, reach, reach), value=value)
    return padded.unfold(-2, width + 2 * reach, width).transpose(-1, -2)


def mean(x, real):
    """Over the tokens of each document."""
    weights = real[..., None].to(x.dtype)
    return (x * weights).sum(1) / weights.sum(1).clamp(min=1)
