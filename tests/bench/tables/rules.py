"""Multiply-adds as the papers count them: one item, forward only. vil_rules.py has those of the ViL paper.

M1  Transformer-LS: linears, convolutions and attention, 5 for each element of a LayerNorm; key tiles in full at
    borders, every row of the last layer, texts at the longest length the model takes.
C   Composite Slice Transformer: pairs of scores, as a ratio to full attention of 256 or 512 tokens.
"""

from tables import vil_rules

NORM = 5  # What M1 counts for an element of a LayerNorm.
CLASS_HEADS = 4  # Features of a pair: both texts, their product and difference.


def tile(window):
    """Keys on a side of the tile that a window sees."""
    return window + 2 * max(window // 2, 1) if window else 0


def m1_text(config):
    n, d, layers, window, rank = (config[key] for key in ("max_seq_len", "d", "layers", "window", "rank"))
    whole = window >= n  # Full attention: as in a plain Transformer, without DualLN and a class row.
    linears = 4 * n * d * d + 2 * n * d * config["ff"]
    landmarks = n * d * config["heads"] * rank + 2 * n * rank * d
    attention = 2 * n * d * (rank + (n if whole else tile(window)))
    norms = 2 * n * d + (0 if whole else 2 * (n + rank) * d)
    class_row = 0 if whole else 4 * n * d
    text = layers * (linears + landmarks + attention + NORM * norms) + class_row + NORM * n * d
    pair = "Pair" in config["architectures"][0]
    head = d * config["ff"] * (CLASS_HEADS if pair else 1) + config["ff"] * config["num_labels"]
    return (2 if pair else 1) * text + head


def m1_cvt(config):
    side, channels, total = config["image_size"], 3, 0
    kernels, strides = (7, 3, 3), (4, 2, 2)
    dual, maps = config.get("dual_ln", True), 1 if config.get("dp_shared_kv", True) else 2
    for stage, depth in enumerate(config["depths"]):
        d, heads, rank, window = (config[key][stage] for key in ("dims", "heads", "ranks", "windows"))
        side //= strides[stage]
        pixels = side * side
        classes = 1 if stage == 2 else 0
        rows = pixels + classes
        keys = rank + classes + (pixels if window >= side else tile(window) ** 2)
        landmarks = maps * pixels * (9 * d + d * heads * rank) + 2 * pixels * rank * d if rank else 0
        block = 3 * pixels * (9 * d + d * d) + landmarks + 2 * pixels * d * keys + 2 * classes * pixels * d
        block += (rows * d * d if heads > 1 else 0) + 8 * rows * d * d
        block += NORM * (2 * rows * d + (2 * (rows + rank) * d if dual else 0))
        total += pixels * d * channels * kernels[stage] ** 2 + NORM * pixels * d + depth * block
        channels = d
    return total + channels * config["num_labels"]


def m1_vil_ls(config):
    total = 0
    for stage in vil_rules.stages(config["arch"], config["image_size"], config["image_size"]):
        n, d, rank, rows = stage.pixels, stage.d, stage.r, stage.rows
        block = 12 * rows * d * d + NORM * 2 * rows * d
        if stage.efficient:
            keys = rank + stage.g + (stage.f + 2 * (stage.f // 2)) ** 2
            block += n * d * stage.h * rank + 2 * n * rank * d + 2 * n * d * keys + 2 * stage.g * n * d
            block += NORM * 2 * (rows + rank) * d
        else:
            block += 2 * rows * rows * d
        total += stage.embedding + NORM * n * d + stage.n * block
    return total + NORM * rows * d + d * config["num_labels"]


M1 = {"transformer_ls": m1_text, "cvt_ls": m1_cvt, "vil_ls": m1_vil_ls}


def c(config, full):
    """Pairs of causal attention within slices and between their abstractions, over those of `full` tokens."""
    n, length, ratio = (config[key] for key in ("max_position_embeddings", "slice_length", "extension_ratio"))
    return (n * n / length / length + 0.5 * (ratio + 1) * n * length) / full ** 2


def by_rule(meaning, config, unit=""):
    """Of a printed cell's model, or None where no rule is known. `unit`: C1 or C2, the whole that C refers to."""
    if meaning == "C":
        return c(config, {"C1": 256, "C2": 512}[unit])
    return M1[config["model_type"]](config) if meaning == "M1" else vil_rules.RULES[meaning](config)
