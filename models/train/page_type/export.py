"""Writes the trained classifier as a directory that the server reads.

    python export.py --work DIR [--out models/zoo/page-type]
"""

import pathlib
import sys

import data
import kinds
import train

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import served  # noqa: E402


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
    served.write(out, saved, config(saved["arch"]), preprocessor())


def main(arguments=None):
    served.main(__doc__, "page-type", export, arguments)


if __name__ == "__main__":
    main()
