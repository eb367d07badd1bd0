"""Writes the trained detector as a directory that the server reads.

    python export.py --work DIR [--out models/zoo/page-layout] [--labels title,heading,paragraph]

`--labels`: those alone are served; a label that convinces nobody is better left out.
"""

import argparse
import functools
import pathlib
import sys

import detector
import layouts
import train

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import served  # noqa: E402


def config(labels=layouts.LABELS):
    return {"architectures": ["ViLForObjectDetection"], "model_type": "vil", "detector": "retinanet",
            "arch": detector.ARCH, "image_size": max(layouts.SIZE), "num_channels": 3,
            "norm_embed": True, "attn_type": "longformerhand", "share_w": True, "share_kv": True,
            "only_global": False, "sw_exact": 0, "mode": 0, "ln_eps": 1e-6,
            "fpn_in_features": [f"layer{i + 1}" for i in range(detector.STAGES)],
            "fpn_out_channels": detector.WIDTH, "fpn_fuse_type": "sum", "anchor_sizes": detector.SIZES,
            "anchor_aspect_ratios": [detector.RATIOS], "anchor_offset": 0.0,
            "head_num_convs": detector.CONVS, "bbox_reg_weights": [1.0, 1.0, 1.0, 1.0],
            "score_threshold": 0.3, "topk_candidates": 1000, "nms_threshold": 0.5,
            "detections_per_image": 200, "num_labels": len(labels),
            "id2label": {str(i): label for i, label in enumerate(labels)},
            "dtype": "float16"}


def preprocessor():
    return {"image_processor_type": "ViLDetectionImageProcessor", "do_convert_rgb": True,
            "do_resize": True, "size": {"shortest_edge": min(layouts.SIZE),
                                        "longest_edge": max(layouts.SIZE)},
            "resample": 2, "do_rescale": False, "do_normalize": True, "image_mean": train.MEAN,
            "image_std": train.STD, "do_pad": True, "size_divisor": detector.STRIDES[detector.STAGES - 1]}


def chosen(tensors, labels):
    """The tensors of a detector that knows `labels` alone, in that order."""
    rows = [layouts.LABELS.index(label) for label in labels]
    found = dict(tensors)
    for name in ("head.cls_score.weight", "head.cls_score.bias"):
        by_anchor = found[name].unflatten(0, (detector.ANCHORS, len(layouts.LABELS)))
        found[name] = by_anchor[:, rows].flatten(0, 1)
    return found


def export(saved, out, labels=layouts.LABELS):
    served_too = {name: value for name, value in saved["average"].items()
                  if not name.startswith("cover.")}
    served.write(out, {"average": chosen(served_too, labels)}, config(labels), preprocessor())


def main(arguments=None):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--labels", type=lambda text: text.split(","), default=layouts.LABELS)
    options, others = parser.parse_known_args(arguments)
    served.main(__doc__, "page-layout", functools.partial(export, labels=options.labels), others)


if __name__ == "__main__":
    main()
