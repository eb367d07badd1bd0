#!/usr/bin/env python3
"""Makes a model directory of a detector of microsoft/VisionLongformerForObjectDetection.

    python3 models/convert/vil_detector.py model_final.pth DIR

The file is what detectron2's checkpointer saved, {"model": {...}}: RetinaNet or Mask R-CNN on a
Vision Longformer of any size. The file's name says nothing: the architecture string, the kind of
detector and its sizes follow from names and shapes; hyper-parameters without a trace there are the
published ones, equal for all sizes. Every tensor is checked by name and shape; one that is not
expected is refused. Models with absolute positions need --heads and --chunk, which leave no trace.
No PyTorch is needed, and nothing in the file is run.
"""

import argparse
import functools
import math
import pathlib
import re
import sys

import command_line
import model_directory
import pickle_to_safetensors
import restricted_unpickler
import torch_file
from restricted_unpickler import RefusedError
from vil_shapes import EFFICIENT, INDEX, dense, parse_arch, stage_shapes

_BODY = "backbone.bottom_up."
# Left over from the classifier, or computed by the server.
_UNUSED = re.compile(r"backbone\.bottom_up\.(norm|head)\.|(.*\.)?anchor_generator\.cell_anchors\.|"
                     r"pixel_(mean|std)$|.*\.relative_position_index$")
_COCO = """person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,
stop sign,parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,
umbrella,handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,
skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,bowl,banana,apple,
sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,dining table,
toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,book,
clock,vase,scissors,teddy bear,hair drier,toothbrush""".replace("\n", "").split(",")
_ANCHORS = 9  # Anchors of a grid point in RetinaNet: three sizes, three ratios.
PREPROCESSOR = {
    "image_processor_type": "ViLDetectionImageProcessor", "do_convert_rgb": True,
    "do_resize": True, "size": {"shortest_edge": 800, "longest_edge": 1333}, "resample": 2,
    "do_rescale": False, "do_normalize": True, "image_mean": [123.675, 116.28, 103.53],
    "image_std": [58.395, 57.12, 57.375], "do_pad": True, "size_divisor": 32,
}

shape = functools.partial(model_directory.shape, family="Vision Longformer detector")


def square_root(value, name):
    root = math.isqrt(value)
    if root * root != value:
        raise RefusedError(f"{name} has {value} rows, which is no square")
    return root


def read_stage(tensors, number, heads, chunk):
    """The stage's attributes by the shapes of its first block."""
    first, block = f"{_BODY}layer{number}.0.", f"{_BODY}layer{number}.1.attn."
    width, _, patch, _ = shape(tensors, first + "proj.weight")
    layers = {int(m[1]) for name in tensors
              if (m := re.match(rf"{re.escape(_BODY)}layer{number}\.(\d+)\.", name))}
    if layers != set(range(len(layers))) or len(layers) % 2 == 0:
        raise RefusedError(f"layer{number} has the parts {sorted(layers)}")
    efficient = block + "qkv.weight" not in tensors
    table = block + "local_relative_position_bias_table"
    absolute = first + "x_pos_embed" in tensors
    if not absolute:
        rows, heads = shape(tensors, table)
        side = square_root(rows, table) + 1
        chunk = side // 4 if efficient else chunk or 7
    if not heads or not chunk:
        raise RefusedError(f"layer{number} has absolute positions: give --heads and --chunk")
    tokens = first + "cls_token"
    return {"l": number, "h": heads, "d": width, "n": len(layers) // 2, "s": int(efficient),
            "g": shape(tensors, tokens)[1] if tokens in tensors else 0, "p": patch, "f": chunk,
            "a": int(absolute)}


def read_config(tensors, heads=None, chunk=None):
    """config.json by the shapes."""
    numbers = sorted({int(m[1]) for name in tensors
                      if (m := re.match(rf"{re.escape(_BODY)}layer(\d+)\.", name))})
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) not in (3, 4):
        raise RefusedError(f"the stages are {numbers}, expected 3 or 4 from 1 on")
    stages = [read_stage(tensors, n, (heads or [])[n - 1:n] and heads[n - 1], chunk)
              for n in numbers]
    retinanet = "head.cls_score.weight" in tensors
    config = {
        "architectures": ["ViLForObjectDetection"],
        "model_type": "vil",
        "detector": "retinanet" if retinanet else "mask_rcnn",
        "arch": "_".join(",".join(f"{k}{v}" for k, v in stage.items()) for stage in stages),
        "image_size": 1333,
        "norm_embed": f"{_BODY}layer1.0.norm_embed.weight" in tensors,
    }
    if retinanet:
        outputs, width = shape(tensors, "head.cls_score.weight")[:2]
        if outputs % _ANCHORS:
            raise RefusedError(f"head.cls_score.weight has {outputs} outputs, not {_ANCHORS} anchors")
        config["num_labels"] = outputs // _ANCHORS
        config["head_num_convs"] = sum(
            bool(re.fullmatch(r"head\.cls_subnet\.\d+\.weight", name)) for name in tensors)
    else:
        width = shape(tensors, "proposal_generator.rpn_head.conv.weight")[0]
        config["num_labels"] = shape(tensors, "roi_heads.box_predictor.cls_score.weight")[0] - 1
        config["box_fc_dim"], inputs = shape(tensors, "roi_heads.box_head.fc1.weight")
        config["box_pooler_resolution"] = square_root(inputs // width, "roi_heads.box_head.fc1")
        config["box_num_fc"] = sum(
            bool(re.fullmatch(r"roi_heads\.box_head\.fc\d+\.weight", name)) for name in tensors)
        config["mask_conv_dim"] = shape(tensors, "roi_heads.mask_head.deconv.weight")[0]
        config["mask_num_conv"] = sum(
            bool(re.fullmatch(r"roi_heads\.mask_head\.mask_fcn\d+\.weight", name))
            for name in tensors)
    config["fpn_out_channels"] = width
    names = _COCO if config["num_labels"] == len(_COCO) else None
    if names:
        config["id2label"] = {str(i): name for i, name in enumerate(names)}
    return config


def backbone_shapes(stages, norm_embed):
    """(tensors, second copies of shared global projections, which may be absent)"""
    wanted, copies, channels = {}, {}, 3
    for stage in stages:
        kind = EFFICIENT[0] if stage["s"] else "full"
        for name, want in stage_shapes(_BODY, stage, channels, 1, kind, norm_embed).items():
            if not name.endswith(INDEX):
                (copies if "_global." in name else wanted)[name] = want
        channels = stage["d"]
    return wanted, copies


def head_shapes(config, stages):
    width, labels = config["fpn_out_channels"], config["num_labels"]
    retinanet = config["detector"] == "retinanet"
    shapes, stride = {}, 1
    for stage in stages:
        stride *= stage["p"]
        if retinanet and stage["l"] == 1:
            continue
        level = stride.bit_length() - 1
        shapes.update(dense(f"backbone.fpn_lateral{level}", width, stage["d"], 1, 1))
        shapes.update(dense(f"backbone.fpn_output{level}", width, width, 3, 3))
    if retinanet:
        shapes.update(dense("backbone.top_block.p6", width, stages[-1]["d"], 3, 3))
        shapes.update(dense("backbone.top_block.p7", width, width, 3, 3))
        for i in range(config["head_num_convs"]):
            shapes.update(dense(f"head.cls_subnet.{2 * i}", width, width, 3, 3))
            shapes.update(dense(f"head.bbox_subnet.{2 * i}", width, width, 3, 3))
        shapes.update(dense("head.cls_score", _ANCHORS * labels, width, 3, 3))
        shapes.update(dense("head.bbox_pred", 4 * _ANCHORS, width, 3, 3))
        return shapes
    fc, mask = config["box_fc_dim"], config["mask_conv_dim"]
    rpn, box, masks = ("proposal_generator.rpn_head.", "roi_heads.box_head.fc",
                       "roi_heads.mask_head.")
    shapes.update(dense(rpn + "conv", width, width, 3, 3))
    shapes.update(dense(rpn + "objectness_logits", 3, width, 1, 1))
    shapes.update(dense(rpn + "anchor_deltas", 12, width, 1, 1))
    for i in range(1, config["box_num_fc"] + 1):
        into = width * config["box_pooler_resolution"] ** 2 if i == 1 else fc
        shapes.update(dense(f"{box}{i}", fc, into))
    shapes.update(dense("roi_heads.box_predictor.cls_score", labels + 1, fc))
    shapes.update(dense("roi_heads.box_predictor.bbox_pred", 4 * labels, fc))
    for i in range(1, config["mask_num_conv"] + 1):
        shapes.update(dense(f"{masks}mask_fcn{i}", mask, width if i == 1 else mask, 3, 3))
    shapes.update(dense(masks + "deconv", mask, mask, 2, 2))
    shapes.update(dense(masks + "predictor", labels, mask, 1, 1))
    return shapes


def check(tensors, config):
    """Names and shapes against the configuration. Position tables are checked by rank: their
    lengths are those of the training images. Returns the tensors to keep."""
    stages = parse_arch(config["arch"])
    wanted, optional = backbone_shapes(stages, config["norm_embed"])
    wanted.update(head_shapes(config, stages))
    free = {f"{_BODY}layer{s['l']}.0.{name}" for s in stages if s["a"]
            for name in ("x_pos_embed", "y_pos_embed", "cls_pos_embed")}
    free |= {f"{_BODY}layer{s['l']}.{2 * b + 1}.attn.local_relative_position_bias_table"
             for s in stages if not s["a"] and not s["s"] for b in range(s["n"])}
    kept = {name for name in tensors if not _UNUSED.match(name)}
    missing = sorted(wanted.keys() - kept - free)
    extra = sorted(kept - wanted.keys() - optional.keys() - free)
    if missing or extra:
        raise RefusedError(f"tensors missing: {missing[:5]}, not expected: {extra[:5]}")
    for name in sorted(kept - free):
        want = wanted.get(name, optional.get(name))
        if list(tensors[name].shape) != want:
            raise RefusedError(f"{name} is {list(tensors[name].shape)}, expected {want}")
    return kept


def convert(options):
    file = torch_file.open_file(options.checkpoint,
                                lambda saved: restricted_unpickler.entry(saved, "model"))
    config = read_config(file.tensors, options.heads, options.chunk)
    kept = check(file.tensors, config)
    tensors, ties = pickle_to_safetensors.collect_file(file)
    tensors = {name: value for name, value in tensors.items() if name in kept}
    ties = {name: first for name, first in ties.items() if name in kept}
    size = model_directory.write(options.directory, tensors, ties, config)
    model_directory.write_json(options.directory / "preprocessor_config.json", PREPROCESSOR)
    return f"{options.directory}: {config['detector']}, {len(tensors)} tensors, {size} bytes"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--heads", type=int, nargs="+", help="by stage, with absolute positions")
    parser.add_argument("--chunk", type=int, help="side of a chunk, with absolute positions")
    options = parser.parse_args(arguments)
    return command_line.run(options.checkpoint, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
