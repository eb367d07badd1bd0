"""Checkpoints of detectron2 become model directories: the fixtures, packed as its checkpointer saves
them, give their own tensors and architecture back; anything else is refused by name."""

import json

import pytest

import vil_detector
import vil_shapes
from fixture_models import GOLDEN, read_safetensors
from torch_pickles import checkpoint

FAMILY = GOLDEN / "vil_detection"
CASES = sorted(path.parents[1].name for path in FAMILY.glob("*/model/config.json"))
# What the file's shapes tell; the others are the published values.
TOLD = ("arch", "detector", "num_labels", "fpn_out_channels", "head_num_convs", "box_fc_dim",
        "box_num_fc", "box_pooler_resolution", "mask_conv_dim", "mask_num_conv", "norm_embed")


def packed(tmp_path, tensors):
    path = tmp_path / "model_final.pth"
    checkpoint(path, tensors, key="model")
    return path


def tensors_of(case):
    tensors, _ = read_safetensors(FAMILY / case / "model/model.safetensors")
    return {name: value for name, value in tensors.items() if value[0] == "F32"}


def run(tmp_path, tensors, *options):
    out = tmp_path / "out"
    return vil_detector.main([str(packed(tmp_path, tensors)), str(out), *options]), out


@pytest.mark.parametrize("case", CASES)
def test_fixtures_come_back(case, tmp_path):
    want = json.loads((FAMILY / case / "model/config.json").read_text())
    options = []
    if ",a1" in want["arch"]:
        stages = vil_shapes.parse_arch(want["arch"])
        options = ["--chunk", str(stages[0]["f"]), "--heads", *(str(s["h"]) for s in stages)]
    tensors = tensors_of(case)
    code, out = run(tmp_path, tensors, *options)
    assert code == 0
    config = json.loads((out / "config.json").read_text())
    for key in TOLD:
        if key == "arch" and options:  # Chunks of several sides leave no trace at all.
            continue
        assert config.get(key) == want.get(key), key
    assert json.loads((out / "preprocessor_config.json").read_text())["size_divisor"] == 32
    written, _ = read_safetensors(out / "model.safetensors")
    used = {name for name in tensors if not vil_detector._UNUSED.match(name)}
    assert written.keys() == used
    assert all(written[name] == tensors[name] for name in used)


def test_coco_names():
    assert len(vil_detector._COCO) == 80
    assert vil_detector._COCO[0] == "person" and vil_detector._COCO[79] == "toothbrush"


@pytest.mark.parametrize("change, message", [
    (lambda t: t.pop("head.bbox_pred.bias"), "head.bbox_pred.bias"),
    (lambda t: t.update({"head.extra.weight": t["head.bbox_pred.bias"]}), "head.extra.weight"),
    (lambda t: t.update({"head.bbox_subnet.0.bias": t["head.bbox_pred.bias"]}),
     "head.bbox_subnet.0.bias is [36]"),
    (lambda t: [t.pop(n) for n in list(t) if "layer3" in n], "stages"),
])
def test_what_does_not_fit_is_refused_by_name(change, message, tmp_path, capsys):
    tensors = tensors_of("retinanet_two_sizes")
    change(tensors)
    code, _ = run(tmp_path, tensors)
    assert code == 1 and message in capsys.readouterr().err


def test_absolute_positions_ask_for_heads(tmp_path, capsys):
    code, _ = run(tmp_path, tensors_of("retinanet_ape_crop"))
    assert code == 1 and "--heads" in capsys.readouterr().err
