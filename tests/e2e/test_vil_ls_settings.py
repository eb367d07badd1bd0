"""ViL-LS with random weights and configurations beside the authors' code, drawn anew in every run
(slow; needs torch, timm). LONGVIEW_SEED repeats a run.

  git clone https://github.com/NVIDIA/transformer-ls
  git -C transformer-ls checkout 1527c5c
  LONGVIEW_TRANSFORMER_LS=transformer-ls python -m pytest tests/e2e/test_vil_ls_settings.py

The authors' attention takes whole windows of square maps. Images of other sizes ("any_size") are
compared with their code around dense_long_short.py, which is first compared with theirs.
"""

import functools

import pytest
from drawn_models import (any_side, arch_string, assert_same, checkout, draw_weights, infer, seeded,
                          serve, stored, write_model)

torch = pytest.importorskip("torch")

from dense_long_short import long_short  # noqa: E402

pytestmark = pytest.mark.slow

MODELS = 40
DEFAULTS = {"h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1, "r": 0}


def draw_stage(rng, number, long_short_stage, side):
    """`side`: of the stage's map."""
    heads = rng.choice([1, 2, 3, 4])
    absolute = rng.randrange(2)
    head = rng.choice([2, 4, 6, 8, 16, 24] if absolute else [2, 3, 5, 8, 16, 24])
    stage = {"l": number, "h": heads, "d": heads * head, "n": rng.choice([1, 1, 2]), "a": absolute,
             "g": rng.choice([0, 1] if long_short_stage else [0, 1, 2, 3]),
             "r": rng.choice([0, 1, 2, 5, 8])}
    windows = [w for w in range(1, 13) if side % w == 0] if long_short_stage else [7]
    if absolute and stage["r"] > 0:
        windows.append(0)  # Landmarks alone.
    return {**stage, "f": rng.choice(windows)}


def draw_config(rng):
    count = rng.choice([3, 4])
    full_from = rng.choice([count, count, rng.randrange(count)])
    patches = [rng.choice([2, 3, 4])] + [rng.choice([1, 2, 2]) for _ in range(count - 1)]
    smallest = patches[0] * 2 ** patches[1:].count(2)
    size = smallest * rng.choice([1, 2, 3, 4]) + rng.randrange(smallest)
    side, stages = size, []
    for i, patch in enumerate(patches):
        side //= patch
        stages.append({**draw_stage(rng, i + 1, i < full_from, side), "p": patch,
                       "s": int(i < full_from or (i > full_from and rng.random() < 0.5))})
    return stages, {
        "model_type": "vil_ls", "architectures": ["ViLLSForImageClassification"],
        "arch": arch_string(rng, stages, DEFAULTS), "image_size": size,
        "norm_embed": rng.random() < 0.8, "avg_pool": rng.random() < 0.3,
        "ln_eps": rng.choice([1e-6, 1e-3]), "dual_ln_eps": rng.choice([1e-5, 1e-2]),
        "mlp_ratio": rng.choice([4.0, 1.0, 2.5, 3.3]), "num_labels": rng.choice([1, 2, 7]),
        "any_size": rng.random() < 0.5}


def build(config, size):
    """The authors' module for images of `size` = (height, width)."""
    from models.layers import AttentionLS
    from models.msvit import MsViT

    class Ratio(MsViT):
        def _make_layer(self, *given, **more):
            self.mlp_args["mlp_ratio"] = config["mlp_ratio"]
            return super()._make_layer(*given, **more)

    model = any_side(Ratio, size)(
        config["arch"], img_size=max(size), num_classes=config["num_labels"], attn_type="ls",
        norm_layer=functools.partial(torch.nn.LayerNorm, eps=config["ln_eps"]),
        norm_embed=config["norm_embed"], avg_pool=config["avg_pool"])
    for module in model.modules():
        if isinstance(module, AttentionLS):
            module.dual_ln_full.eps = module.dual_ln_dp.eps = config["dual_ln_eps"]
    return model.eval()


def dense_forward(self, x, nx, ny):
    """In place of the authors' attention."""
    q, k, v = self.qkv(x).chunk(3, dim=2)
    k, v = self.dual_ln_full(k), self.dual_ln_full(v)
    scores = ()
    if self.dp_rank > 0:
        scores = (self.to_dynamic_projection(x[:, self.nglo:]),) * 2
    table = self.local_relative_position_bias_table if self.rpe else None
    return self.proj(long_short(q * self.scale, k, v, (nx, ny), self.num_heads, self.window_size,
                                scores, self.dual_ln_dp, self.nglo, table))


def dense(model):
    from models.layers import AttentionLS
    for module in model.modules():
        if isinstance(module, AttentionLS):
            module.forward = functools.partial(dense_forward, module)
    return model


def resized(model, config, size):
    """The model for images of another size: positions and full tables interpolated."""
    interpolate = torch.nn.functional.interpolate
    larger = build(config, size)
    tensors = model.state_dict()
    for name, target in larger.state_dict().items():
        value = tensors[name]
        if name.endswith("relative_position_index"):
            tensors[name] = target
        elif value.shape == target.shape:
            continue
        elif name.endswith("pos_embed"):
            tensors[name] = interpolate(value.transpose(1, 2), target.shape[1],
                                        mode="linear").transpose(1, 2)
        else:
            stage = int(name.split(".")[0].removeprefix("layer"))
            old, new = (getattr(m, f"layer{stage}")[0] for m in (model, larger))
            grid = value.T.reshape(1, -1, 2 * old.nx - 1, 2 * old.ny - 1)
            tensors[name] = interpolate(grid, (2 * new.nx - 1, 2 * new.ny - 1),
                                        mode="bilinear").flatten(2)[0].T
    larger.load_state_dict(tensors)
    return dense(larger)


def test_configurations_as_the_authors(tmp_path):
    checkout("LONGVIEW_TRANSFORMER_LS", "NVIDIA/transformer-ls", "imagenet")
    rng = seeded()
    drawn = []
    for index in range(MODELS):
        stages, config = draw_config(rng)
        model = build(config, [config["image_size"]] * 2)
        draw_weights(model)
        write_model(tmp_path / f"model-{index}", config, stored(rng, model))
        drawn.append((stages, config, model))
    with serve(tmp_path) as server, torch.no_grad():
        for index, (stages, config, model) in enumerate(drawn):
            side, patch = config["image_size"], stages[0]["p"]
            # Rows that the first convolution leaves out.
            spare = [rng.randrange(patch - side % patch) for _ in range(2)]
            sizes = [[side + spare[0], side + spare[1]]]
            if config["any_size"]:
                sizes += [[rng.randrange(side // 2, 2 * side) + side // 2 for _ in range(2)]
                          for _ in range(2)]
            for size in sizes:
                pixels = torch.randn(rng.choice([1, 2]), 3, *size)
                peer = model if size is sizes[0] else resized(model, config, size)
                wanted = peer(pixels)
                if size is sizes[0]:
                    assert_same(dense(model)(pixels), wanted, f"the definition of {config}")
                got = infer(server, f"model-{index}", {"pixel_values": pixels.numpy()}, ["logits"])
                assert_same(got["logits"], wanted.numpy(),
                            f"model {index}, {size}: {config}")
