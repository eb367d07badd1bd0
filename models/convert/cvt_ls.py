#!/usr/bin/env python3
"""Makes a model directory of a CvT*-LS classifier trained in the modules of
rishikksh20/convolution-vision-transformers with the attention of NVIDIA/transformer-ls.

    python3 models/convert/cvt_ls.py CHECKPOINT DIR --heads 1,3,6 --windows 8,4,2

No weights of this family were published, and its paper leaves choices open: what leaves a trace in
names and shapes is read off them, the rest are options (keys of config.json, models/README.md).
Every tensor is checked by name and shape; a plain CvT is refused. No PyTorch is needed, and nothing
in the file is run.
"""

import argparse
import functools
import re
import sys

import command_line
import image_directory as images
import model_directory
from restricted_unpickler import RefusedError

_KERNELS = (7, 3, 3)
_ATTENTION = "stage{}_transformer.0.layers.{}.0.fn."

shape = functools.partial(model_directory.shape, family="CvT-LS classifier")


def three(text):
    """A command line's "1,3,6"."""
    numbers = [int(part) for part in text.split(",")]
    if len(numbers) != 3 or min(numbers) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not three numbers")
    return numbers


def read_config(tensors, options):
    """config.json by names, shapes and options."""
    first = _ATTENTION.format(1, 0)
    dims = [shape(tensors, f"stage{s}_conv_embed.0.weight")[0] for s in (1, 2, 3)]
    depths, ranks = [], []
    for s, heads in zip((1, 2, 3), options.heads):
        blocks = {int(m[1]) for name in tensors
                  if (m := re.match(rf"stage{s}_transformer\.0\.layers\.(\d+)\.", name))}
        depths.append(len(blocks))
        projection = _ATTENTION.format(s, 0) + "to_dynamic_projection.pointwise.weight"
        columns = shape(tensors, projection)[0] if projection in tensors else 0
        if heads < 1 or dims[s - 1] % heads or columns % heads:
            raise RefusedError(f"--heads: {heads} do not divide width {dims[s - 1]} and {columns} "
                               f"projections of stage {s}")
        ranks.append(columns // heads)
    landmarks = next((_ATTENTION.format(s, 0) for s in (1, 2, 3) if ranks[s - 1]), None)

    def has(name):
        return name in tensors

    hidden = shape(tensors, first.replace("0.fn.", "1.fn.net.0.weight"))[0]
    classes = shape(tensors, "mlp_head.1.weight")[0]
    one_head = [_ATTENTION.format(s, 0) + "to_out.0.weight" for s in (1, 2, 3)
                if options.heads[s - 1] == 1]
    return {
        "model_type": "cvt_ls",
        "architectures": ["CvTLSForImageClassification"],
        "image_size": options.image_size,
        "num_channels": 3,
        "dims": dims,
        "heads": options.heads,
        "depths": depths,
        "ranks": ranks,
        "windows": options.windows,
        "mlp_ratio": hidden / dims[0],
        "cls_stage": 3 if has("cls_token") else None,
        "cls_qkv": options.cls_qkv,
        "cls_update": options.cls_update,
        "qkv_norm": "bn" if has(first + "to_q.bn.weight") else options.qkv_norm,
        "qkv_bias": has(first + "to_q.depthwise.bias"),
        "dp_shared_kv": landmarks is None or not has(
            landmarks + "to_dynamic_projection_v.pointwise.weight"),
        "dp_input": options.dp_input,
        "dp_bias": landmarks is None or has(landmarks + "to_dynamic_projection.depthwise.bias"),
        "ws_variant": options.ws_variant,
        "stage1_out_proj": "always" if any(map(has, one_head)) else "auto",
        "dual_ln": has(first + "dual_ln_full.weight"),
        "act": options.act,
        "attn_scale": options.attn_scale,
        "pool": options.pool if has("cls_token") else "mean",
        "embed_norm": has("stage1_conv_embed.2.weight"),
        "any_size": options.any_size,
        "num_labels": classes,
        **images.labels(options.labels, classes),
    }


def norm(name, width):
    return {f"{name}.weight": [width], f"{name}.bias": [width]}


def linear(name, out, into):
    return {f"{name}.weight": [out, into], f"{name}.bias": [out]}


def separable(name, out, into, bias, batch_norm):
    shapes = {f"{name}.depthwise.weight": [into, 1, 3, 3],
              f"{name}.pointwise.weight": [out, into, 1, 1]}
    if bias:
        shapes |= {f"{name}.depthwise.bias": [into], f"{name}.pointwise.bias": [out]}
    if batch_norm:
        shapes |= norm(f"{name}.bn", into)
        shapes |= {f"{name}.bn.running_mean": [into], f"{name}.bn.running_var": [into],
                   f"{name}.bn.num_batches_tracked": []}
    return shapes


def attention_shapes(name, config, stage):
    d, h, r = (config[key][stage] for key in ("dims", "heads", "ranks"))
    shapes = {}
    for part in ("to_q", "to_k", "to_v"):
        shapes |= separable(name + part, d, d, config["qkv_bias"], config["qkv_norm"] == "bn")
    if r:
        for suffix in [""] if config["dp_shared_kv"] else ["", "_v"]:
            shapes |= separable(f"{name}to_dynamic_projection{suffix}", h * r, d,
                                config["dp_bias"], False)
    if config["dual_ln"]:
        shapes |= norm(f"{name}dual_ln_full", d) | norm(f"{name}dual_ln_dp", d)
    if h > 1 or config["stage1_out_proj"] == "always":
        shapes |= linear(f"{name}to_out.0", d, d)
    return shapes


def expected_shapes(config):
    """Every tensor such a model stores."""
    shapes, channels = {}, 3
    for s, kernel in enumerate(_KERNELS):
        d, hidden = config["dims"][s], int(config["dims"][s] * config["mlp_ratio"])
        name = f"stage{s + 1}_conv_embed."
        shapes |= {f"{name}0.weight": [d, channels, kernel, kernel], f"{name}0.bias": [d]}
        if config["embed_norm"]:
            shapes |= norm(f"{name}2", d)
        for block in range(config["depths"][s]):
            layer = f"stage{s + 1}_transformer.0.layers.{block}."
            shapes |= norm(f"{layer}0.norm", d) | norm(f"{layer}1.norm", d)
            shapes |= attention_shapes(f"{layer}0.fn.", config, s)
            shapes |= linear(f"{layer}1.fn.net.0", hidden, d)
            shapes |= linear(f"{layer}1.fn.net.3", d, hidden)
        channels = d
    if config["cls_stage"]:
        shapes["cls_token"] = [1, 1, channels]
    return shapes | norm("mlp_head.0", channels) | linear(
        "mlp_head.1", config["num_labels"], channels)


def convert(options):
    file = images.open_net(options.checkpoint)
    config = read_config(file.tensors, options)
    wanted = expected_shapes(config)
    counters = [name for name in wanted if name.endswith(".num_batches_tracked")]
    model_directory.check(file.tensors, wanted, counters)
    return images.write(options.directory, file, file.tensors, config, lambda *names: False,
                        images.pipeline(options.image_size, options.crop_fraction))


def main(arguments=None):
    parser = images.parser(__doc__)
    parser.add_argument("--heads", type=three, required=True, metavar="H,H,H")
    parser.add_argument("--windows", type=three, required=True, metavar="W,W,W")
    parser.add_argument("--cls-qkv", default="identity", choices=["identity", "pointwise"])
    parser.add_argument("--cls-update", default="post", choices=["post", "joint"])
    parser.add_argument("--qkv-norm", default="none", choices=["none", "ws"],
                        help="of kernels without BatchNorm")
    parser.add_argument("--dp-input", default="ln_out", choices=["ln_out", "k"])
    parser.add_argument("--ws-variant", default="qiao",
                        choices=["qiao", "biased", "centred_norm"])
    parser.add_argument("--act", default="gelu_erf", choices=["gelu_erf", "quick_gelu"])
    parser.add_argument("--attn-scale", default="head_dim", choices=["head_dim", "model_dim"])
    parser.add_argument("--pool", default="cls", choices=["cls", "mean"])
    parser.add_argument("--any-size", action="store_true")
    options = parser.parse_args(arguments)
    return command_line.run(options.checkpoint, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
