"""Parts of encoders written plainly in PyTorch: random tensors by name, and layers that read
them."""

import torch
from torch.nn import functional as F

from tables.encoders import Shape


def shape_of(arguments):
    """The shape that encoder_peers.py was asked for."""
    return Shape(arguments.width, arguments.heads, 4 * arguments.width, arguments.layers, max(arguments.lengths))


class RandomTensors(dict):
    """name -> random tensor of a model of width d; equal for equal generators and calls."""

    def __init__(self, d, generator):
        super().__init__()
        self.d, self.generator = d, generator

    def normal(self, name, *shape, scale=0.05):
        self[name] = torch.randn(*shape, generator=self.generator) * scale

    def dense(self, name, out, into):
        self.normal(name + ".weight", out, into, scale=into ** -0.5)
        self.normal(name + ".bias", out)

    def norm(self, name):
        self[name + ".weight"] = 1 + 0.1 * torch.randn(self.d, generator=self.generator)
        self.normal(name + ".bias", self.d)


class PlainModel:
    """A model directory's config.json and tensors."""

    def __init__(self, given, tensors):
        self.given, self.tensors = given, tensors

    def dense(self, name, x):
        return F.linear(x, self.tensors[name + ".weight"], self.tensors[name + ".bias"])

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.tensors[name + ".weight"],
                            self.tensors[name + ".bias"])
