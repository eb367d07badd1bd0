"""Detector heads on other families: a fixture's classifier becomes the backbone of a detector, whose
maps are then those of the classifier."""

import json
import sys

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from goldens import tensors
from safetensors.numpy import save_file
from server_process import GOLDEN, ROOT, Server

sys.path.insert(0, str(ROOT / "models/convert"))
import vil_detector  # noqa: E402
import vil_shapes  # noqa: E402

FIXTURES = {"vil_ls": "published_shape_64", "cvt_ls": "any_size"}


def stages_of(config):
    """Number, width and patch side of each stage."""
    if "arch" in config:
        return vil_shapes.parse_arch(config["arch"])
    return [{"l": i + 1, "d": width, "p": (4, 2, 2)[i]} for i, width in enumerate(config["dims"])]


def strides_of(config):
    return list(np.cumprod([stage["p"] for stage in stages_of(config)]))


def make_detector(backbone, classifier, directory):
    """The classifier's body with random RetinaNet heads."""
    config = json.loads((classifier / "config.json").read_text())
    config.pop("id2label", None)
    stages = stages_of(config)
    config.update(architectures=["ViLForObjectDetection"], model_type="vil", backbone=backbone,
                  detector="retinanet", fpn_out_channels=16, num_labels=3, head_num_convs=2,
                  score_threshold=0.0, anchor_sizes=[[8, 10, 12], [16, 20, 25], [32, 40, 50],
                                                     [64, 80, 100], [128, 160, 200]]
                  [:len(stages) + 1])
    random = np.random.default_rng(2)
    body = {f"backbone.bottom_up.{name}": tensor
            for name, tensor in tensors(classifier / "model.safetensors").items()
            if not name.startswith(("head.", "norm.", "mlp_head."))}
    heads = vil_detector.head_shapes(config, stages)
    for name, shape in heads.items():
        body[name] = random.normal(0, 0.03, shape).astype(np.float32)
    directory.mkdir()
    save_file(body, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("backbone", sorted(FIXTURES))
def test_the_same_maps_and_boxes_behind_them(backbone, tmp_path):
    classifier = GOLDEN / backbone / FIXTURES[backbone] / "model"
    make_detector(backbone, classifier, tmp_path / "detector")
    pixels = np.random.default_rng(1).normal(size=(1, 3, 64, 64)).astype(np.float32)
    config = json.loads((classifier / "config.json").read_text())
    names = [f"features.{stride}" for stride in strides_of(config)]

    def ask(client, model, outputs):
        tensor = triton_grpc.InferInput("pixel_values", pixels.shape, "FP32")
        tensor.set_data_from_numpy(pixels)
        wanted = [triton_grpc.InferRequestedOutput(name) for name in outputs]
        return client.infer(model, [tensor], outputs=wanted)

    models = [f"classifier={classifier}", f"detector={tmp_path / 'detector'}"]
    with Server(models, "--dtype=fp32") as server:
        client = triton_grpc.InferenceServerClient(server.grpc)
        want, got = (ask(client, model, names) for model in ("classifier", "detector"))
        for name in names:
            assert np.array_equal(want.as_numpy(name), got.as_numpy(name)), name
        found = ask(client, "detector", ["boxes", "scores", "labels"])
    boxes, scores = found.as_numpy("boxes"), found.as_numpy("scores")
    assert 0 < len(boxes) <= 100 and np.isfinite(boxes).all()
    assert (boxes >= 0).all() and (boxes <= 64).all() and (np.diff(scores) <= 0).all()
