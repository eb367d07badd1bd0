"""Vision Longformer with random weights and configurations beside the authors' code, drawn anew in
every run (slow; needs torch, timm, einops, scipy). LONGVIEW_SEED repeats a run.

  git clone https://github.com/microsoft/vision-longformer
  git -C vision-longformer checkout c9ce386
  LONGVIEW_VIL=vision-longformer python -m pytest tests/e2e/test_vil_settings.py
"""

import functools

import pytest
from drawn_models import (any_side, arch_string, assert_same, checkout, draw_weights, infer, seeded,
                          serve, single_and_double, stored, write_model)

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

MODELS = 40
DEFAULTS = {"h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1}


def draw_stage(rng, number, kind, efficient):
    heads = rng.choice([1, 2, 3, 4])
    absolute = rng.randrange(2)
    head = rng.choice([2, 4, 6, 8, 16, 24] if absolute else [2, 3, 4, 5, 8, 16, 24])
    features = {"linformer": [1, 3, 8, 20], "srformer": [1, 2], "performer": [1, 2, 5, 20, 33]}
    return {"l": number, "h": heads, "d": heads * head, "n": rng.choice([1, 1, 2]), "s": efficient,
            "g": rng.choice([0, 1, 1, 2, 3]), "a": absolute,
            "p": rng.choice([2, 3, 4] if number == 1 else [1, 2, 2]),
            "f": rng.choice(features.get(kind, [1, 2, 3, 4, 5, 7]))}


def draw_config(rng):
    kind = rng.choice(["longformerhand"] * 4 + ["longformerauto", "full", "linformer", "srformer",
                                                "performer"])
    count = rng.choice([3, 4])
    full_from = rng.choice([count, count, rng.randrange(count)])
    stages = [draw_stage(rng, i + 1, kind, int(i != full_from)) for i in range(count)]
    if rng.random() < 0.3:
        for stage in stages:
            stage["a"] = 0  # Chunks alone then take any size of image.
    exact = rng.choice([0, 0, 1, -1])
    config = {"attn_type": kind, "sw_exact": exact,
              "mode": rng.choice([0, 0, 3, 0 if exact == 1 else -1]),
              "share_w": rng.random() < 0.6, "share_kv": rng.random() < 0.5,
              "norm_embed": rng.random() < 0.8, "avg_pool": rng.random() < 0.3,
              "ln_eps": rng.choice([1e-6, 1e-6, 1e-3]), "num_labels": rng.choice([1, 2, 7])}
    if "longformer" in kind and rng.random() < 0.15:
        config["only_global"] = True
        for stage in stages:
            stage["g"] = max(1, stage["g"])
    stride = 1
    for stage in stages:
        stride *= stage["p"]
    least = 2 * stride * max(stage["f"] for stage in stages) if kind == "srformer" else stride
    config["image_size"] = [rng.randrange(least, least + rng.choice([3, 40, 70])) for _ in range(2)]
    return stages, {"model_type": "vil", "architectures": ["ViLForImageClassification"],
                    "arch": arch_string(rng, stages, DEFAULTS), **config}


def build(config, size):
    """The authors' module for images of `size` = (height, width)."""
    from models.msvit import MsViT

    return any_side(MsViT, size)(
        config["arch"], img_size=max(size), num_classes=config["num_labels"],
        norm_layer=functools.partial(torch.nn.LayerNorm, eps=config["ln_eps"]),
        norm_embed=config["norm_embed"], avg_pool=config["avg_pool"], sharew=config["share_w"],
        share_kv=config["share_kv"], only_glo=config.get("only_global", False),
        attn_type=config["attn_type"], sw_exact=config["sw_exact"], mode=config["mode"])


def any_size(stages, config):
    """Whether the weights belong to no size of image."""
    return all(not stage["a"] and stage["s"] for stage in stages) and (
        "longformer" in config["attn_type"])


def test_configurations_as_the_authors(tmp_path):
    checkout("LONGVIEW_VIL", "microsoft/vision-longformer", "src")
    rng = seeded()
    drawn = []
    for index in range(MODELS):
        stages, config = draw_config(rng)
        model = build(config, config["image_size"])
        draw_weights(model)
        write_model(tmp_path / f"model-{index}", config, stored(rng, model))
        drawn.append((stages, config, model.double().eval()))
    with serve(tmp_path) as server, torch.no_grad():
        for index, (stages, config, model) in enumerate(drawn):
            sizes = [config["image_size"]]
            if any_size(stages, config):
                sizes.append([side + rng.randrange(0, 40) for side in config["image_size"]])
            for size in sizes:
                pixels = torch.randn(rng.choice([1, 2]), 3, *size)
                peer = model
                if size != config["image_size"]:
                    peer = build(config, size).double().eval()
                    peer.load_state_dict(model.state_dict())
                # Each image alone: Performer's maximum is of the whole batch there.
                single, wanted = single_and_double(peer, pixels)
                got = infer(server, f"model-{index}", {"pixel_values": pixels.numpy()}, ["logits"])
                assert_same(got["logits"], wanted,
                            f"model {index}, {size}: {config}", single)
