"""What tests of drawn configurations share: a seed, the original code, random weights, model
directories, requests. The original code is never part of this repository: a variable of the
environment names a checkout of it."""

import json
import os
import pathlib
import random
import sys

import numpy
import pytest

from server_process import Server

SEED = int(os.environ.get("LONGVIEW_SEED", random.randrange(1 << 30)))
# Relative where values are large; single precision over a few layers.
TOLERANCE = 1e-4


def seeded():
    """What configurations are drawn from; weights follow the same seed."""
    import torch
    torch.manual_seed(SEED)
    return random.Random(SEED)


def checkout(variable, repository, folder=""):
    """Puts a folder of the original code in front of what Python finds, or skips the test."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no checkout of {repository}")
    sys.path.insert(0, str(pathlib.Path(path) / folder))


def draw_weights(model, scale=1.2):
    """Weights under which every part of the model moves its answer."""
    import torch
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                fan = max(1, parameter.numel() // max(1, len(parameter)))
                parameter.copy_(torch.randn_like(parameter) * scale * fan ** -0.5)
            else:  # Scales begin at one, biases at zero.
                parameter.add_(0.2 * torch.randn_like(parameter))


def arch_string(rng, stages, defaults):
    """The architecture string of ViL and ViL-LS: attributes in any order, some of those that have
    their defaults left out."""
    parts = []
    for stage in stages:
        keys = [key for key in stage
                if key == "l" or stage[key] != defaults.get(key) or rng.random() < 0.7]
        rng.shuffle(keys)
        parts.append(",".join(f"{key}{stage[key]}" for key in keys))
    return "_".join(parts)


def any_side(base, size):
    """The class of a model of square images, for images of `size` = (height, width)."""
    class AnySide(base):
        def _make_layer(self, *given, layerid=0, **more):
            if layerid == 1:
                self.Nx, self.Ny = size
            return super()._make_layer(*given, layerid=layerid, **more)

    return AnySide


def stored(rng, model):
    """The tensors a file may hold: with a prefix or not, with or without what can be derived."""
    tensors = model.state_dict()
    if rng.random() < 0.5:
        tensors = {name: value for name, value in tensors.items()
                   if "relative_position_index" not in name and value.numel() > 0}
    prefix = rng.choice(["", "", "module."])
    return {prefix + name: value for name, value in tensors.items()}


def write_model(directory, config, tensors):
    """A directory that the server can be pointed at."""
    from safetensors.torch import save_file
    directory.mkdir(parents=True)
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()},
              directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(config))


def single_and_double(model, pixels):
    """What a model answers in both precisions, each image alone; the model stays double."""
    single = [model.float()(image[None]) for image in pixels]
    double = [model.double()(image[None].double()) for image in pixels]
    return [numpy.concatenate([answer.numpy() for answer in answers])
            for answers in (single, double)]


def serve(folder):
    """A server of all models in a folder; slow machines may take their time."""
    return Server([folder], "--dtype=fp32", "--cache_bytes=256MiB", "--max_queue_seconds=600",
                  ready_seconds=900)


def infer(server, name, tensors, outputs, parameters=None):
    """The named outputs of one /v2 request as arrays."""
    kinds = {"f": "FP32", "i": "INT64"}
    body = {"inputs": [{"name": key, "shape": list(value.shape),
                        "datatype": kinds[value.dtype.kind], "data": value.ravel().tolist()}
                       for key, value in tensors.items()],
            "outputs": [{"name": output} for output in outputs],
            "parameters": {key: json.dumps(value) if isinstance(value, list) else value
                           for key, value in (parameters or {}).items()}}
    status, answer = server.post_json(f"/v2/models/{name}/infer", body, timeout=600)
    assert status == 200, f"LONGVIEW_SEED={SEED} {name}: {answer} {parameters}"
    return {output["name"]: numpy.array(output["data"]).reshape(output["shape"])
            for output in answer["outputs"]}


def assert_same(got, wanted, what, single=None):
    """`single`: what the original answers in single precision, where `wanted` is of double: random
    weights may be ill conditioned, and then both stray."""
    stray = 0 if single is None else 10 * float(numpy.abs(single - wanted).max())
    numpy.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE + stray,
                                  err_msg=f"LONGVIEW_SEED={SEED} {what}")
