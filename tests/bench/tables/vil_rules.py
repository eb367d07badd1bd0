"""Multiply-adds as the ViL paper counts them: one picture, forward only.

M2   of a classifier: patches, linears and attention, without global tokens, biases and norms; a query of a ViL
     stage has (2w + 1)^2 keys, w the side of a chunk.
M2r  the list of the release: as M2 with 9 w^2 keys and w = 7.
M3   of a detector at 800 x 1344: biases and global tokens, too, the mask head not; attention of a ViL stage with
     channels in the place of tokens.

Of models with global tokens alone ("Global") no rule is known.
"""

import dataclasses

RELEASE_CHUNK = 7
HEIGHT, WIDTH, PYRAMID, REGIONS = 800, 1344, 256, 1000
BOX, POOLED = 1024, 7 * 7 * PYRAMID


@dataclasses.dataclass
class Stage:
    """A stage of an arch string over its map; letters are those of the string."""
    h: int
    d: int
    n: int
    g: int
    p: int
    f: int
    r: int
    efficient: bool
    height: int
    width: int
    channels: int  # Of its input.

    @property
    def pixels(self):
        return self.height * self.width

    @property
    def rows(self):
        return self.pixels + self.g

    @property
    def embedding(self):
        return self.pixels * self.d * self.channels * self.p ** 2

    @property
    def reduced(self):
        """Keys of SRA, whose reduction has the side f."""
        return (self.height // self.f) * (self.width // self.f)


def stages(arch, height, width):
    found, efficient, channels = [], True, 3
    for text in arch.split("_"):
        field = {part[0]: int(part[1:]) for part in text.split(",")}
        efficient = efficient and field["s"] == 1
        height, width = height // field["p"], width // field["p"]
        letters = {letter: field.get(letter, 0) for letter in "hdngpfr"}
        found.append(Stage(**letters, efficient=efficient, height=height, width=width, channels=channels))
        channels = field["d"]
    return found


def classifier(config, keys):
    """`keys` of a query of a ViL stage, by the side of its chunk."""
    if config.get("only_global"):
        return None
    total = 0
    for stage in stages(config["arch"], config["image_size"], config["image_size"]):
        n, d = stage.pixels, stage.d
        kind = config["attn_type"] if stage.efficient else "full"
        block = 12 * n * d * d
        if kind == "srformer":
            block += 2 * n * stage.reduced * d - 2 * (n - stage.reduced) * d * d + stage.f ** 2 * d * d * stage.reduced
        elif kind == "performer":
            block += 6 * n * stage.f * d
        elif kind == "linformer":
            block += 4 * n * stage.f * d
        else:
            block += 2 * n * d * (n if kind == "full" else keys(stage.f))
        total += stage.embedding + stage.n * block
    return total + d * config["num_labels"]


def m2(config):
    return classifier(config, lambda chunk: (2 * chunk + 1) ** 2)


def m2r(config):
    return classifier(config, lambda chunk: 9 * RELEASE_CHUNK ** 2)


def backbone(config):
    """Multiply-adds, and the stages."""
    total, maps = 0, stages(config["arch"], HEIGHT, WIDTH)
    for stage in maps:
        rows, d, g = stage.rows, stage.d, stage.g
        kind = config["attn_type"] if stage.efficient else "full"
        block = 12 * rows * d * d + 9 * rows * d
        if kind == "srformer":
            keys = stage.reduced + g
            block += 2 * rows * keys * d - 2 * (rows - keys) * d * d + stage.f ** 2 * d * d * stage.reduced
        elif kind == "performer":
            block += 6 * rows * stage.f * d
        elif kind == "full":
            block += 2 * rows * rows * d
        else:
            block += 2 * ((d - g) * (9 * stage.f ** 2 + g) * d + g * rows * d)
        total += stage.embedding + stage.n * block
    return total, maps


def halved(side):
    return -(-side // 2)


def m3(config):
    if config.get("only_global"):
        return None
    total, maps = backbone(config)
    last, conv = maps[-1], 9 * PYRAMID * PYRAMID
    sixth = halved(last.height) * halved(last.width)
    retina = config["detector"] == "retinanet"
    used = maps[1:] if retina else maps
    total += sum(stage.pixels * (stage.d * PYRAMID + conv) for stage in used)
    pixels = sum(stage.pixels for stage in used) + sixth
    if retina:
        seventh = halved(halved(last.height)) * halved(halved(last.width))
        total += sixth * 9 * last.d * PYRAMID + seventh * conv
        pixels += seventh
        return total + pixels * (8 * conv + 9 * PYRAMID * 9 * (config["num_labels"] + 4))
    boxes = POOLED * BOX + BOX * BOX + BOX * (5 * config["num_labels"] + 1)
    return total + pixels * (conv + PYRAMID * 3 * (1 + 4)) + REGIONS * boxes


RULES = {"M2": m2, "M2r": m2r, "M3": m3}
