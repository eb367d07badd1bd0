#!/usr/bin/env python3
"""Makes a model directory of a classifier of microsoft/vision-longformer or of the imagenet/ folder
of NVIDIA/transformer-ls (ViL-LS).

    python3 models/convert/vil.py model_best.pth DIR --arch l1,h3,d96,...

The architecture string stands in the config.yaml beside the weights, or in the evaluation command
of the repository's README. Which of the two families it is follows from the tensors. Every tensor
is checked by name and shape, stored indices of relative positions by their formula; those are derived
and left out. No PyTorch is needed, and nothing in the file is run.
"""

import argparse
import array
import pathlib
import re
import sys

import image_directory as images
import torch_file
from restricted_unpickler import RefusedError

_DEFAULTS = {"l": 1, "h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1, "r": 0}
_EFFICIENT = ("longformerhand", "longformerauto")
_INDEX = "relative_position_index"


def parse_arch(text):
    """[{key letter: number}] of the stages; "s" holds whether attention is the efficient one."""
    stages, efficient = [], True
    for number, part in enumerate(text.split("_"), 1):
        if not re.fullmatch(r"[a-z]-?\d+(,[a-z]-?\d+)*", part):
            raise RefusedError(f"--arch: {part!r} is not a list of letters and numbers")
        stage = dict(_DEFAULTS, **{a[0]: int(a[1:]) for a in part.split(",")})
        if stage["l"] != number:
            raise RefusedError(f"--arch: {part!r} must have l{number}")
        if min(stage[key] for key in "hdnp") < 1 or stage["d"] % stage["h"]:
            raise RefusedError(f"--arch: {part!r}: h, d, n, p are above 0 and h divides d")
        efficient = stage["s"] = efficient and stage["s"] != 0
        stages.append(stage)
    if len(stages) not in (3, 4):
        raise RefusedError(f"--arch: {len(stages)} stages, expected 3 or 4")
    return stages


def dense(name, out, into):
    return {f"{name}.weight": [out, into], f"{name}.bias": [out]}


def norm(name, width):
    return {f"{name}.weight": [width], f"{name}.bias": [width]}


def bias_shapes(name, stage, side, kind):
    """The learned table, its index, and the biases of global tokens."""
    h, g, w = stage["h"], stage["g"], stage["f"]
    if kind == "full":
        table, index = (2 * side - 1) ** 2, [side * side] * 2
    elif kind == "long_short":
        half = w // 2
        table = 2 * (w + half - 1) * (w + 2 * half + 1) + 1
        index = [w * w, (w + 2 * half) ** 2]
    else:
        table, index = (4 * w - 1) ** 2, [w * w, 9 * w * w]
    shapes = {f"{name}local_relative_position_bias_table": [table, h], name + _INDEX: index}
    if g and kind != "long_short":
        shapes[f"{name}g2l_relative_position_bias"] = [2, h, g]
        shapes[f"{name}g2g_relative_position_bias"] = [h, g, g]
    return shapes


def attention_shapes(name, stage, side, kind):
    """Tensors of one attention; `side` of the stage's map."""
    d, f, g = stage["d"], stage["f"], stage["g"]
    shapes = dense(f"{name}proj", d, d)
    if kind in ("full", "performer", "long_short"):
        shapes |= dense(f"{name}qkv", 3 * d, d)
    else:
        shapes |= dense(f"{name}query", d, d) | dense(f"{name}kv", 2 * d, d)
    if kind in _EFFICIENT and g:
        for part, out in (("query", d), ("kv", 2 * d), ("proj", d)):
            shapes |= dense(f"{name}{part}_global", out, d)
    if kind == "long_short":
        if stage["r"]:
            shapes |= dense(f"{name}to_dynamic_projection", stage["h"] * stage["r"], d)
        shapes |= norm(f"{name}dual_ln_full", d) | norm(f"{name}dual_ln_dp", d)
    elif kind == "linformer":
        shapes |= {f"{name}proj_k": [g + side * side, f], f"{name}proj_v": [g + side * side, f]}
    elif kind == "srformer":
        shapes[f"{name}proj_sr.weight"] = [d, d, f, f]
    elif kind == "performer":
        shapes[f"{name}fast_attention.projection_matrix"] = [f, d // stage["h"]]
    if not stage["a"] and kind in ("full", "long_short", *_EFFICIENT):
        shapes |= bias_shapes(name, stage, side, kind)
    return shapes


def expected_shapes(stages, options, classes):
    """Every tensor such a model stores."""
    shapes, channels, side = {}, 3, options.image_size
    for number, stage in enumerate(stages, 1):
        d, g, p = stage["d"], stage["g"], stage["p"]
        side //= p
        name = f"layer{number}.0."
        shapes |= {f"{name}proj.weight": [d, channels, p, p], f"{name}proj.bias": [d]}
        if not options.no_norm_embed:
            shapes |= norm(f"{name}norm_embed", d)
        if g:
            shapes[f"{name}cls_token"] = [1, g, d]
        if stage["a"]:
            shapes |= {f"{name}cls_pos_embed": [1, g, d], f"{name}x_pos_embed": [1, side, d // 2],
                       f"{name}y_pos_embed": [1, side, d // 2]}
        kind = options.attn_type if stage["s"] else "full"
        for block in range(stage["n"]):
            name = f"layer{number}.{2 * block + 1}."
            shapes |= norm(f"{name}norm", d) | attention_shapes(f"{name}attn.", stage, side, kind)
            name = f"layer{number}.{2 * block + 2}."
            shapes |= norm(f"{name}norm", d)
            shapes |= dense(f"{name}mlp.fc1", 4 * d, d) | dense(f"{name}mlp.fc2", d, 4 * d)
        channels = d
    return shapes | norm("norm", channels) | dense("head", classes, channels)


def index_bytes(stage, shape, kind):
    """relative_position_index by its formula."""
    w = stage["f"]
    if kind == "full":
        side = int(shape[0] ** 0.5)
        queries = keys = [(x, y) for x in range(side) for y in range(side)]
        shift, factor = side - 1, 2 * side - 1
    else:
        queries = [(x, y) for x in range(w) for y in range(w)]
        if kind == "long_short":
            half = w // 2
            reach = range(-half, w + half)
            keys = [(x, y) for x in reach for y in reach]
            shift, factor = half + w - 1, w + 2 * half
        else:
            chunks = [(m * w, n * w) for m in (-1, 0, 1) for n in (-1, 0, 1)]
            keys = [(m + x, n + y) for m, n in chunks for x, y in queries]
            shift, factor = 2 * w - 1, 4 * w - 1
    return array.array("q", [(qx - kx + shift) * factor + qy - ky + shift
                             for qx, qy in queries for kx, ky in keys]).tobytes()


def take_indices(file, stages, kind_of):
    """Removes the stored indices after comparing them with their formula; returns how many."""
    wanted = {}
    names = [name for name in file.tensors if name.endswith(_INDEX)]
    for name in names:
        tensor = file.tensors.pop(name)
        number = int(name[len("layer")]) - 1
        if number not in wanted:
            wanted[number] = index_bytes(stages[number], tensor.shape, kind_of(stages[number]))
        if torch_file.tensor_bytes(tensor, file.read_storage(tensor.storage)) != wanted[number]:
            raise RefusedError(f"{name} is not what --arch says: another chunk side?")
    return len(names)


def config_of(stages, options, classes):
    long_short = options.attn_type == "long_short"
    config = {
        "model_type": "vil_ls" if long_short else "vil",
        "architectures": [f"ViL{'LS' if long_short else ''}ForImageClassification"],
        "arch": options.arch,
        "image_size": options.image_size,
        "num_channels": 3,
        "norm_embed": not options.no_norm_embed,
        "avg_pool": options.avg_pool,
        # The released code computes with this whatever its LN_EPS says.
        "ln_eps": 1e-6,
        "num_labels": classes,
        **images.labels(options.labels, classes),
    }
    if not long_short:
        config |= {"attn_type": options.attn_type, "share_w": not options.separate_globals,
                   "share_kv": not options.separate_kv, "only_global": options.only_global,
                   "sw_exact": options.sw_exact, "mode": options.mode}
    return config


def shared_pair(options):
    """Which second copies the original modules store of shared weights."""

    def allowed(name, kept):
        if "_global." in name:
            return name.replace("_global.", ".") == kept and not options.separate_globals
        return name.endswith("proj_v") and name[:-1] + "k" == kept and not options.separate_kv

    return allowed


def convert(options):
    file = images.open_net(options.checkpoint)
    if any(".attn.dual_ln_full." in name for name in file.tensors):
        options.attn_type = "long_short"
    stages = parse_arch(options.arch)
    file.tensors.pop("calls_since_last_redraw", None)
    classes = images.shape(file.tensors, "head.weight")[0]
    wanted = expected_shapes(stages, options, classes)
    second_copy = shared_pair(options)
    optional = [n for n, s in wanted.items() if n.endswith(_INDEX) or 0 in s
                or second_copy(n, n.replace("_global.", ".").replace("proj_v", "proj_k"))]
    images.check(file.tensors, wanted, optional)
    indices = take_indices(file, stages, lambda s: options.attn_type if s["s"] else "full")
    line = images.write(options.directory, file, file.tensors, config_of(stages, options, classes),
                        second_copy,
                        images.pipeline(options.image_size, options.crop_fraction))
    return line + (f", {indices} derived indices checked and left out" if indices else "")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--arch", required=True, help="MODEL.VIT.MSVIT.ARCH")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--crop-fraction", type=float, default=0.875, help="INPUT.CROP_PCT")
    parser.add_argument("--attn-type", default="longformerhand", help="ViL, of stages with s1",
                        choices=[*_EFFICIENT, "full", "linformer", "srformer", "performer"])
    parser.add_argument("--avg-pool", action="store_true")
    parser.add_argument("--no-norm-embed", action="store_true")
    parser.add_argument("--separate-globals", action="store_true", help="SHARE_W was off")
    parser.add_argument("--separate-kv", action="store_true", help="SHARE_KV was off")
    parser.add_argument("--only-global", action="store_true")
    parser.add_argument("--sw-exact", type=int, default=0, choices=[-1, 0, 1])
    parser.add_argument("--mode", type=int, default=0)
    parser.add_argument("--labels", type=pathlib.Path, help="a file with one class name a line")
    options = parser.parse_args(arguments)
    try:
        print(convert(options))
    except (RefusedError, OSError) as error:
        print(f"{options.checkpoint}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
