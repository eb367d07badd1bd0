"""CvT-LS with random weights and configurations beside its definition in plain PyTorch, drawn anew
in every run (slow; needs torch). Nobody published code of this family. LONGVIEW_SEED repeats a
run."""


import pytest
from drawn_models import (assert_same, draw_weights, infer, seeded, serve, single_and_double,
                          write_model)

torch = pytest.importorskip("torch")

from dense_long_short import long_short  # noqa: E402
from torch import nn  # noqa: E402

pytestmark = pytest.mark.slow

MODELS = 40


def standardised(kernel, variant):
    """Kernels [C, 1, 3, 3], each standardised by itself."""
    centred = kernel - kernel.mean((2, 3), keepdim=True)
    if variant == "qiao":
        return centred / (kernel.flatten(1).std(1)[:, None, None, None] + 1e-5)
    if variant == "biased":
        variance = kernel.flatten(1).var(1, unbiased=False)
        return centred / (variance[:, None, None, None] + 1e-5).sqrt()
    return centred / centred.flatten(1).norm(dim=1)[:, None, None, None]


class Separable(nn.Module):
    """Depthwise 3 x 3, a norm or none, pointwise."""

    def __init__(self, width, out, norm, bias, config):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=bias)
        if norm == "bn":
            self.bn = nn.BatchNorm2d(width, eps=config["bn_eps"])
            self.bn.running_mean.normal_(0, 0.3)
            self.bn.running_var.uniform_(0.5, 2)
        self.pointwise = nn.Conv2d(width, out, 1, bias=bias)
        self.standardised = config["ws_variant"] if norm == "ws" else None

    def forward(self, rows, size):
        x = rows.transpose(1, 2).unflatten(2, size)
        if self.standardised:
            kernel = standardised(self.depthwise.weight, self.standardised)
            x = nn.functional.conv2d(x, kernel, self.depthwise.bias, padding=1,
                                     groups=x.shape[1])
        else:
            x = self.depthwise(x)
        if hasattr(self, "bn"):
            x = self.bn(x)
        return self.pointwise(x).flatten(2).transpose(1, 2)

    def point(self, rows):
        """The pointwise part alone."""
        return nn.functional.linear(rows, self.pointwise.weight[:, :, 0, 0], self.pointwise.bias)


class Attention(nn.Module):
    def __init__(self, config, stage):
        super().__init__()
        width, self.heads = config["dims"][stage], config["heads"][stage]
        self.config, self.window = config, config["windows"][stage]
        self.rank = config["ranks"][stage]
        for part in "qkv":
            setattr(self, f"to_{part}", Separable(width, width, config["qkv_norm"],
                                                  config["qkv_bias"], config))
        if self.rank > 0:
            made = ["to_dynamic_projection"]
            made += [] if config["dp_shared_kv"] else ["to_dynamic_projection_v"]
            for name in made:
                setattr(self, name, Separable(width, self.heads * self.rank, "ws",
                                              config["dp_bias"], config))
        if config["dual_ln"]:
            self.dual_ln_full = nn.LayerNorm(width, config["dual_ln_eps"])
            self.dual_ln_dp = nn.LayerNorm(width, config["dual_ln_eps"])
        if self.heads > 1 or config["stage1_out_proj"] == "always":
            self.to_out = nn.Sequential(nn.Linear(width, width))

    def forward(self, y, size):
        config, globals_ = self.config, y.shape[1] - size[0] * size[1]
        class_row, places = y[:, :globals_], y[:, globals_:]
        pointwise = config["cls_qkv"] == "pointwise"
        made = {}
        for part in "qkv":
            separable = getattr(self, f"to_{part}")
            row = separable.point(class_row) if pointwise else class_row
            made[part] = torch.cat([row, separable(places, size)], 1)
        q, k, v = made["q"], made["k"], made["v"]
        source = places if config["dp_input"] == "ln_out" else k[:, globals_:]
        width = y.shape[2]
        q = q * (width if config["attn_scale"] == "model_dim" else width // self.heads) ** -0.5
        norm = lambda rows: rows  # noqa: E731
        if config["dual_ln"]:
            k, v, norm = self.dual_ln_full(k), self.dual_ln_full(v), self.dual_ln_dp
        scores = ()
        if self.rank > 0:
            of_keys = self.to_dynamic_projection(source, size)
            scores = (of_keys, of_keys if config["dp_shared_kv"]
                      else self.to_dynamic_projection_v(source, size))
        out = long_short(q, k, v, size, self.heads, self.window, scores, norm, globals_,
                         joint=config["cls_update"] == "joint")
        return self.to_out(out) if hasattr(self, "to_out") else out


class Residual(nn.Module):
    def __init__(self, width, eps, inner):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(width, eps), inner

    def forward(self, x, *more):
        return x + self.fn(self.norm(x), *more)


class QuickGelu(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class Mlp(nn.Module):
    def __init__(self, width, hidden, act):
        super().__init__()
        gelu = nn.GELU() if act == "gelu_erf" else QuickGelu()
        self.net = nn.Sequential(nn.Linear(width, hidden), gelu, nn.Identity(),
                                 nn.Linear(hidden, width))

    def forward(self, x):
        return self.net(x)


class CvtLs(nn.Module):
    """Named as in a checkpoint."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        widths, eps = [3, *config["dims"]], config["ln_eps"]
        for s in range(3):
            kernel, stride = ((7, 4), (3, 2), (3, 2))[s]
            embed = [nn.Conv2d(widths[s], widths[s + 1], kernel, stride, kernel // 3),
                     nn.Identity()]
            if config["embed_norm"]:
                embed.append(nn.LayerNorm(widths[s + 1], eps))
            setattr(self, f"stage{s + 1}_conv_embed", nn.Sequential(*embed))
            width = widths[s + 1]
            layers = nn.ModuleList(nn.ModuleList([
                Residual(width, eps, Attention(config, s)),
                Residual(width, eps, Mlp(width, int(width * config["mlp_ratio"]), config["act"]))])
                for _ in range(config["depths"][s]))
            block = nn.Module()
            block.layers = layers
            setattr(self, f"stage{s + 1}_transformer", nn.Sequential(block))
        if config["cls_stage"]:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, widths[3]))
        self.mlp_head = nn.Sequential(nn.LayerNorm(widths[3], eps),
                                      nn.Linear(widths[3], config["num_labels"]))

    def forward(self, image):
        x = image
        for s in range(3):
            embed = getattr(self, f"stage{s + 1}_conv_embed")
            x = embed[0](x)
            size = tuple(x.shape[2:])
            x = x.flatten(2).transpose(1, 2)
            x = embed[2](x) if len(embed) > 2 else x
            if s == 2 and self.config["cls_stage"]:
                x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
            for attention, mlp in getattr(self, f"stage{s + 1}_transformer")[0].layers:
                x = mlp(attention(x, size))
            if s < 2:
                x = x.transpose(1, 2).unflatten(2, size)
        return self.mlp_head(x[:, 0] if self.config["pool"] == "cls" else x.mean(1))


def maps(side):
    """Sides of the three maps of a square image."""
    first = (side + 4 - 7) // 4 + 1
    second = (first + 2 - 3) // 2 + 1
    return first, second, (second + 2 - 3) // 2 + 1


def draw_config(rng):
    side = rng.choice([8, 13, 16, 24, 29, 32, 40, 48, 61])
    heads = [rng.choice([1, 2, 3, 4]) for _ in range(3)]
    any_size = rng.random() < 0.5
    ranks = [rng.choice([0, 1, 2, 5, 9]) for _ in range(3)]
    windows = [rng.choice([w for w in range(1, 9) if any_size or m % w == 0]) for m in maps(side)]
    for stage in range(3):
        if ranks[stage] > 0 and rng.random() < 0.15:
            windows[stage] = 0
    cls_stage = rng.choice([3, 3, None])
    return {
        "model_type": "cvt_ls", "architectures": ["CvTLSForImageClassification"],
        "image_size": side, "heads": heads, "ranks": ranks, "windows": windows,
        "dims": [h * rng.choice([2, 4, 5, 8, 16]) for h in heads],
        "depths": [rng.choice([1, 1, 2]) for _ in range(3)],
        "mlp_ratio": rng.choice([4.0, 1.0, 2.5]), "cls_stage": cls_stage,
        "cls_qkv": rng.choice(["identity", "pointwise"]),
        "cls_update": rng.choice(["post", "joint"]), "qkv_norm": rng.choice(["bn", "ws", "none"]),
        "qkv_bias": rng.random() < 0.6, "dp_bias": rng.random() < 0.6,
        "dp_shared_kv": rng.random() < 0.6, "dp_input": rng.choice(["ln_out", "k"]),
        "ws_variant": rng.choice(["qiao", "biased", "centred_norm"]),
        "stage1_out_proj": rng.choice(["auto", "always"]), "dual_ln": rng.random() < 0.7,
        "dual_ln_eps": rng.choice([1e-5, 1e-2]), "ln_eps": rng.choice([1e-5, 1e-3]),
        "bn_eps": rng.choice([1e-5, 1e-2]), "act": rng.choice(["gelu_erf", "quick_gelu"]),
        "attn_scale": rng.choice(["head_dim", "model_dim"]),
        "pool": rng.choice(["cls", "mean"]) if cls_stage else "mean",
        "embed_norm": rng.random() < 0.8, "any_size": any_size,
        "num_labels": rng.choice([1, 2, 7])}


def test_configurations_as_defined(tmp_path):
    rng = seeded()
    drawn = []
    for index in range(MODELS):
        config = draw_config(rng)
        model = CvtLs(config).eval()
        draw_weights(model)
        write_model(tmp_path / f"model-{index}", config, model.state_dict())
        drawn.append((config, model.double()))
    with serve(tmp_path) as server, torch.no_grad():
        for index, (config, model) in enumerate(drawn):
            sizes = [[config["image_size"]] * 2]
            if config["any_size"]:
                sizes += [[rng.randrange(4, 80) for _ in range(2)] for _ in range(2)]
            for size in sizes:
                pixels = torch.randn(rng.choice([1, 2]), 3, *size)
                single, wanted = single_and_double(model, pixels)
                got = infer(server, f"model-{index}", {"pixel_values": pixels.numpy()}, ["logits"])
                assert_same(got["logits"], wanted,
                            f"model {index}, {size}: {config}", single)
