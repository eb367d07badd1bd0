#!/usr/bin/env python3
"""Makes a model directory of a classifier of microsoft/vision-longformer or of the imagenet/ folder
of NVIDIA/transformer-ls (ViL-LS).

    python3 models/convert/vil.py model_best.pth DIR --arch l1,h3,d96,...

The architecture string stands in the config.yaml beside the weights, or in the evaluation command
of the repository's README. Which of the two families it is follows from the tensors. Every tensor
is checked by name and shape, stored indices of relative positions by their formula; those are derived
and left out. No PyTorch is needed, and nothing in the file is run.
"""

import array
import sys

import command_line
import image_directory as images
import model_directory
import torch_file
from restricted_unpickler import RefusedError
from vil_shapes import EFFICIENT, INDEX, dense, norm, parse_arch, stage_shapes


def expected_shapes(stages, options, classes):
    """Every tensor such a model stores."""
    shapes, channels, side = {}, 3, options.image_size
    for stage in stages:
        side //= stage["p"]
        kind = options.attn_type if stage["s"] else "full"
        shapes |= stage_shapes("", stage, channels, side, kind, not options.no_norm_embed)
        channels = stage["d"]
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
    names = [name for name in file.tensors if name.endswith(INDEX)]
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
    classes = model_directory.shape(file.tensors, "head.weight", "Vision Longformer classifier")[0]
    wanted = expected_shapes(stages, options, classes)
    second_copy = shared_pair(options)
    optional = [n for n, s in wanted.items() if n.endswith(INDEX) or 0 in s
                or second_copy(n, n.replace("_global.", ".").replace("proj_v", "proj_k"))]
    model_directory.check(file.tensors, wanted, optional)
    indices = take_indices(file, stages, lambda s: options.attn_type if s["s"] else "full")
    line = images.write(options.directory, file, file.tensors, config_of(stages, options, classes),
                        second_copy,
                        images.pipeline(options.image_size, options.crop_fraction))
    return line + (f", {indices} derived indices checked and left out" if indices else "")


def main(arguments=None):
    parser = images.parser(__doc__)
    parser.add_argument("--arch", required=True, help="MODEL.VIT.MSVIT.ARCH")
    parser.add_argument("--attn-type", default="longformerhand", help="ViL, of stages with s1",
                        choices=[*EFFICIENT, "full", "linformer", "srformer", "performer"])
    parser.add_argument("--avg-pool", action="store_true")
    parser.add_argument("--no-norm-embed", action="store_true")
    parser.add_argument("--separate-globals", action="store_true", help="SHARE_W was off")
    parser.add_argument("--separate-kv", action="store_true", help="SHARE_KV was off")
    parser.add_argument("--only-global", action="store_true")
    parser.add_argument("--sw-exact", type=int, default=0, choices=[-1, 0, 1])
    parser.add_argument("--mode", type=int, default=0)
    options = parser.parse_args(arguments)
    return command_line.run(options.checkpoint, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
