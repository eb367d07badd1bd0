"""Writes the trained classifier as a directory that the server reads.

    python export.py --work DIR [--out models/zoo/page-type]
"""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

import data
import kinds
import train


def config(arch):
    return {"architectures": ["ViLForImageClassification"], "model_type": "vil", "arch": arch,
            "image_size": data.SIDE, "num_channels": 3, "norm_embed": True, "avg_pool": False,
            "attn_type": "longformerhand", "share_w": True, "share_kv": True, "only_global": False,
            "sw_exact": 0, "mode": 0, "ln_eps": 1e-6, "num_labels": len(kinds.LABELS),
            "id2label": {str(i): label for i, label in enumerate(kinds.LABELS)},
            "label2id": {label: i for i, label in enumerate(kinds.LABELS)},
            "problem_type": "single_label_classification", "dtype": "float16"}


def preprocessor():
    """The whole picture, squeezed to a square as data.pixels does it."""
    return {"image_processor_type": "ViLImageProcessor", "do_convert_rgb": True, "do_resize": True,
            "size": {"height": data.SIDE, "width": data.SIDE}, "resample": 2,
            "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "image_mean": train.MEAN, "image_std": train.STD}


def export(saved, out):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.half().contiguous() for name, value in saved["average"].items()}
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    # Weights in 16 bits are for size; answers are computed in 32.
    for name, content in (("config", config(saved["arch"])), ("preprocessor_config", preprocessor()),
                          ("longview", {"dtype": "fp32"})):
        (out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "zoo/page-type")
    options = parser.parse_args(arguments)
    saved = torch.load(options.work / "page-type.pt", weights_only=True)
    export(saved, options.out)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{options.out}: step {saved['step']}, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
