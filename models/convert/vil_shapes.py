"""Names and shapes of Vision Longformer's and ViL-LS's tensors, by their architecture string: what the
converters of classifiers and of detectors check files against."""

import re

from restricted_unpickler import RefusedError

_DEFAULTS = {"l": 1, "h": 3, "d": 192, "n": 1, "s": 1, "g": 1, "p": 2, "f": 7, "a": 1, "r": 0}
EFFICIENT = ("longformerhand", "longformerauto")
INDEX = "relative_position_index"


def parse_arch(text):
    """[{key letter: number}] of the stages; "s" holds whether attention is the efficient one."""
    stages, efficient = [], True
    for number, part in enumerate(text.split("_"), 1):
        if not re.fullmatch(r"[a-z]-?\d+(,[a-z]-?\d+)*", part):
            raise RefusedError(f"--arch: {part!r} is not a list of letters and numbers")
        stage = dict(_DEFAULTS, **{a[0]: int(a[1:]) for a in part.split(",")})
        if stage["l"] != number:
            raise RefusedError(f"--arch: {part!r} must have l{number}")
        if min(stage[key] for key in "hdnp") < 1 or stage["d"] % stage["h"]:
            raise RefusedError(f"--arch: {part!r}: h, d, n, p are above 0 and h divides d")
        efficient = stage["s"] = efficient and stage["s"] != 0
        stages.append(stage)
    if len(stages) not in (3, 4):
        raise RefusedError(f"--arch: {len(stages)} stages, expected 3 or 4")
    return stages


def dense(name, out, into, *kernel):
    return {f"{name}.weight": [out, into, *kernel], f"{name}.bias": [out]}


def norm(name, width):
    return {f"{name}.weight": [width], f"{name}.bias": [width]}


def bias_shapes(name, stage, side, kind):
    """The learned table, its index, and the biases of global tokens."""
    h, g, w = stage["h"], stage["g"], stage["f"]
    if kind == "full":
        table, index = (2 * side - 1) ** 2, [side * side] * 2
    elif kind == "long_short":
        half = w // 2
        table = 2 * (w + half - 1) * (w + 2 * half + 1) + 1
        index = [w * w, (w + 2 * half) ** 2]
    else:
        table, index = (4 * w - 1) ** 2, [w * w, 9 * w * w]
    shapes = {f"{name}local_relative_position_bias_table": [table, h], name + INDEX: index}
    if g and kind != "long_short":
        shapes[f"{name}g2l_relative_position_bias"] = [2, h, g]
        shapes[f"{name}g2g_relative_position_bias"] = [h, g, g]
    return shapes


def attention_shapes(name, stage, side, kind):
    """Tensors of one attention; `side` of the stage's map."""
    d, f, g = stage["d"], stage["f"], stage["g"]
    shapes = dense(f"{name}proj", d, d)
    if kind in ("full", "performer", "long_short"):
        shapes |= dense(f"{name}qkv", 3 * d, d)
    else:
        shapes |= dense(f"{name}query", d, d) | dense(f"{name}kv", 2 * d, d)
    if kind in EFFICIENT and g:
        for part, out in (("query", d), ("kv", 2 * d), ("proj", d)):
            shapes |= dense(f"{name}{part}_global", out, d)
    if kind == "long_short":
        if stage["r"]:
            shapes |= dense(f"{name}to_dynamic_projection", stage["h"] * stage["r"], d)
        shapes |= norm(f"{name}dual_ln_full", d) | norm(f"{name}dual_ln_dp", d)
    elif kind == "linformer":
        shapes |= {f"{name}proj_k": [g + side * side, f], f"{name}proj_v": [g + side * side, f]}
    elif kind == "srformer":
        shapes[f"{name}proj_sr.weight"] = [d, d, f, f]
    elif kind == "performer":
        shapes[f"{name}fast_attention.projection_matrix"] = [f, d // stage["h"]]
    if not stage["a"] and kind in ("full", "long_short", *EFFICIENT):
        shapes |= bias_shapes(name, stage, side, kind)
    return shapes


def stage_shapes(prefix, stage, channels, side, kind, norm_embed):
    """Every tensor of a stage on a map of `side` x `side`, with the indices that some files hold."""
    d, g, p = stage["d"], stage["g"], stage["p"]
    first = f"{prefix}layer{stage['l']}."
    shapes = dense(f"{first}0.proj", d, channels, p, p)
    if norm_embed:
        shapes |= norm(f"{first}0.norm_embed", d)
    if g:
        shapes[f"{first}0.cls_token"] = [1, g, d]
    if stage["a"]:
        shapes |= {f"{first}0.cls_pos_embed": [1, g, d], f"{first}0.x_pos_embed": [1, side, d // 2],
                   f"{first}0.y_pos_embed": [1, side, d // 2]}
    for block in range(stage["n"]):
        name = f"{first}{2 * block + 1}."
        shapes |= norm(f"{name}norm", d) | attention_shapes(f"{name}attn.", stage, side, kind)
        name = f"{first}{2 * block + 2}."
        shapes |= norm(f"{name}norm", d)
        shapes |= dense(f"{name}mlp.fc1", 4 * d, d) | dense(f"{name}mlp.fc2", d, 4 * d)
    return shapes
