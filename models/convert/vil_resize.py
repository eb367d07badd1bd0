#!/usr/bin/env python3
"""Adapts a Vision Longformer or ViL-LS classifier to another image size, other chunks or a detector,
as the original loaders do before fine-tuning.

    python3 models/convert/vil_resize.py DIR OUT --image-size 384 [--arch l1,h3,...] [--classes 10]
    python3 models/convert/vil_resize.py DIR OUT --image-size 1333 --arch ... --detector

DIR holds config.json and model.safetensors. Positions and relative biases are stretched bilinearly,
a head keeps its first rows, full attention becomes chunked (its projections are split), one global token
becomes several. --detector writes the names of a detector's backbone; the rest of a detector has to be
trained. Weights that have no rule are refused by name. No PyTorch is needed.
"""

import argparse
import array
import json
import math
import pathlib
import re
import struct
import sys

import command_line
import model_directory
from restricted_unpickler import RefusedError
from vil_shapes import parse_arch

_TABLE = "local_relative_position_bias_table"
_FORMATS = {"F32": "f", "F16": "e"}


def read(path):
    """{name: (dtype, shape, bytes)}"""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[end + entry["data_offsets"][0]:end + entry["data_offsets"][1]])
            for name, entry in header.items()}


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text
                     + b"".join(tensors[name][2] for name in sorted(tensors)))


def rows(name, tensor):
    """A tensor's values as rows of its last dimension."""
    dtype, shape, data = tensor
    if dtype not in _FORMATS:
        raise RefusedError(f"{name} is {dtype}; F32 and F16 can be interpolated")
    values = struct.unpack(f"<{len(data) // struct.calcsize(_FORMATS[dtype])}{_FORMATS[dtype]}", data)
    return [values[i:i + shape[-1]] for i in range(0, len(values), shape[-1])]


def packed(dtype, shape, found):
    flat = array.array("d", (value for row in found for value in row))
    return dtype, shape, struct.pack(f"<{len(flat)}{_FORMATS[dtype]}", *flat)


def stretched(found, count):
    """Rows interpolated to `count`: half-pixel centres, two taps, borders clamped."""
    made = []
    for i in range(count):
        at = max(0.0, (i + 0.5) * len(found) / count - 0.5)
        low = min(int(at), len(found) - 1)
        high, share = min(low + 1, len(found) - 1), at - low
        made.append([(1 - share) * a + share * b
                     for a, b in zip(found[low], found[high], strict=True)])
    return made


def stretched_table(name, tensor, side):
    """[T, heads] of a square grid to a grid of side `side`."""
    dtype, (entries, heads), _ = tensor
    old = math.isqrt(entries)
    if old * old != entries:
        raise RefusedError(f"{name} has {entries} rows: only square tables are stretched")
    if old == side:
        return tensor
    found = rows(name, tensor)
    lines = [[value for row in found[y * old:(y + 1) * old] for value in row] for y in range(old)]
    made = []
    for line in stretched(lines, side):
        made += stretched([line[i:i + heads] for i in range(0, len(line), heads)], side)
    return packed(dtype, [side * side, heads], made)


def first_rows(tensor, begin, end):
    dtype, shape, data = tensor
    size = len(data) // shape[0]
    return dtype, [end - begin, *shape[1:]], data[begin * size:end * size]


class Stage:
    """From one stage to another of the same blocks."""

    def __init__(self, source, target, side, long_short):
        for key in "dnhp":
            if source[key] != target[key]:
                raise RefusedError(f"--arch: stage {target['l']} has {key}{target[key]}, the weights "
                                   f"have {key}{source[key]}")
        self.source, self.target, self.side, self.long_short = source, target, side, long_short

    def table_side(self, name):
        if not self.target["s"]:
            return 2 * self.side - 1
        if self.long_short:
            raise RefusedError(f"{name}: tables of windows are not stretched")
        return 4 * self.target["f"] - 1

    def adapt(self, name, tensor):
        """{name: tensor} in place of one."""
        dtype, shape, data = tensor
        part = name.split(".", 1)[1]
        g = self.target["g"]
        if re.search(r"\.[xy]_pos_embed$", name):
            if shape[1] in (1, self.side):
                return {name: tensor}
            made = stretched(rows(name, tensor), self.side)
            return {name: packed(dtype, [1, self.side, shape[2]], made)}
        if name.endswith(_TABLE):
            same = (self.long_short and self.target["s"] and self.target["f"] == self.source["f"])
            return {name: tensor if same else
                    stretched_table(name, tensor, self.table_side(name))}
        if g != self.source["g"] and re.search(r"(cls_token|cls_pos_embed|g2[lg]_\w+)$", part):
            if not part.endswith("cls_token") or shape[1] != 1:
                raise RefusedError(f"{name} is of {self.source['g']} global tokens, not {g}")
            return {name: (dtype, [1, g, shape[2]], data * g)}
        if self.target["s"] and not self.source["s"] and ".attn." in name and not self.long_short:
            return self.chunked(name, tensor)
        return {name: tensor}

    def chunked(self, name, tensor):
        """Projections of full attention by the names of chunked attention, and the globals' copies."""
        stem, _, kind = name.rpartition(".")
        d, copies = self.target["d"], ("", "_global") if self.target["g"] else ("",)
        if stem.endswith(".qkv"):
            stem = stem.removesuffix("qkv")
            return {f"{stem}{part}{copy}.{kind}": first_rows(tensor, begin, end)
                    for part, begin, end in (("query", 0, d), ("kv", d, 3 * d)) for copy in copies}
        if stem.endswith(".proj"):
            return {f"{stem}{copy}.{kind}": tensor for copy in copies}
        return {name: tensor}


def adapted(tensors, config, arch, image_size, classes):
    """All tensors of a model by `arch` for images of that side."""
    long_short = config["model_type"] == "vil_ls"
    if config.get("attn_type", "longformerhand") not in ("longformerhand", "longformerauto", "full"):
        raise RefusedError(f"attn_type {config['attn_type']!r} has no rule for other sizes")
    source, target = parse_arch(config["arch"]), parse_arch(arch)
    if len(source) != len(target):
        raise RefusedError(f"--arch has {len(target)} stages, the weights have {len(source)}")
    stages, side = [], image_size
    for one, other in zip(source, target, strict=True):
        side //= other["p"]
        stages.append(Stage(one, other, side, long_short))
    made = {}
    for name, tensor in tensors.items():
        name = name.removeprefix("module.")
        if name.endswith("relative_position_index"):
            continue
        if match := re.match(r"layer(\d)\.", name):
            made |= stages[int(match[1]) - 1].adapt(name, tensor)
        elif name.startswith("head.") and classes:
            if classes > tensor[1][0]:
                raise RefusedError(f"--classes {classes}: the head has {tensor[1][0]}")
            made[name] = first_rows(tensor, 0, classes)
        else:
            made[name] = tensor
    return made


def convert(options):
    config = json.loads((options.directory / "config.json").read_text())
    for key in ("model_type", "arch"):
        if key not in config:
            raise RefusedError(f"config.json has no {key!r}: not a Vision Longformer classifier")
    arch = options.arch or config["arch"]
    size = options.image_size
    if options.detector:  # Its longest side, in whole strides.
        stride = math.prod(stage["p"] for stage in parse_arch(arch))
        size = -(-size // stride) * stride
    tensors = adapted(read(options.directory / "model.safetensors"), config, arch, size,
                      options.classes)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.detector:
        write(options.out / "model.safetensors",
              {f"backbone.bottom_up.{name}": tensor for name, tensor in tensors.items()})
        return f"{options.out}: {len(tensors)} tensors of a backbone"
    config |= {"arch": arch, "image_size": size}
    if options.classes:
        config["num_labels"] = options.classes
        names = config.get("id2label", {})
        config["id2label"] = {key: name for key, name in names.items() if int(key) < options.classes}
        config.pop("label2id", None)
    write(options.out / "model.safetensors", tensors)
    model_directory.write_json(options.out / "config.json", config)
    return f"{options.out}: {len(tensors)} tensors for images of {size} x {size}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--image-size", type=int, required=True)
    parser.add_argument("--arch")
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--detector", action="store_true")
    options = parser.parse_args(arguments)
    return command_line.run(options.directory, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
