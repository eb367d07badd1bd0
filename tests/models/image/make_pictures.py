"""Writes tests/golden/images: small pictures of every kind, and what Pillow makes of them.

    python tests/models/image/make_pictures.py tests/golden/images     # needs pillow, numpy, safetensors

pictures/NAME.EXT, and expected.safetensors: NAME = convert("RGB"); NAME.seen = the same after
ImageOps.exif_transpose; resize.F.WxH = the picture `photo` resized with filter F.
"""

import pathlib
import sys

import numpy as np
from PIL import Image, ImageOps
from safetensors.numpy import save_file

SIZE = (23, 17)


def wavy(channels):
    """Smooth colours with an edge, so that codecs and filters have something to get wrong."""
    x, y = np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1]))
    planes = [127 + 120 * np.sin(x / (3 + c) + y / (2.5 + c)) for c in range(channels)]
    image = np.stack(planes, -1).astype(np.uint8)
    image[5:9, 8:14] = 255 - image[5:9, 8:14]
    return image


def exif(orientation):
    data = Image.Exif()
    data[0x0112] = orientation
    return data


def pictures():
    rgb = Image.fromarray(wavy(3))
    rgba = Image.fromarray(wavy(4))
    gray = Image.fromarray(wavy(1)[..., 0])
    deep = wavy(1)[..., 0].astype(np.uint16) * 3
    yield "photo", "jpg", rgb, {"quality": 90, "subsampling": 0}
    yield "photo420", "jpg", rgb, {"quality": 80, "subsampling": 2}
    yield "progressive", "jpg", rgb, {"quality": 85, "progressive": True}
    yield "gray_jpeg", "jpg", gray, {"quality": 90}
    yield "cmyk", "jpg", rgb.convert("CMYK"), {"quality": 95}
    for orientation in range(1, 9):
        yield f"turned{orientation}", "jpg", rgb, {"quality": 95, "exif": exif(orientation)}
    yield "rgb", "png", rgb, {}
    yield "turned_png", "png", rgb, {"exif": exif(6)}
    yield "rgba", "png", rgba, {}
    yield "gray", "png", gray, {}
    yield "gray_alpha", "png", Image.merge("LA", [gray, gray.rotate(180)]), {}
    yield "gray16", "png", Image.fromarray(deep), {}
    yield "bilevel", "png", gray.convert("1"), {}
    yield "palette", "png", rgb.quantize(12), {}
    yield "palette_transparent", "png", rgb.quantize(12), {"transparency": 3}
    yield "lossless", "webp", rgb, {"lossless": True}
    yield "lossy", "webp", rgb, {"quality": 80}
    yield "webp_alpha", "webp", rgba, {"lossless": True, "exact": True}
    yield "turned_webp", "webp", rgb, {"lossless": True, "exif": exif(8)}


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, extension, image, options in pictures():
        path = folder / "pictures" / f"{name}.{extension}"
        image.save(path, **options)
        with Image.open(path) as read:
            expected[name] = np.asarray(read.convert("RGB"))
            if "exif" in options:
                expected[f"{name}.seen"] = np.asarray(ImageOps.exif_transpose(read).convert("RGB"))
    photo = Image.fromarray(expected["rgb"])
    for code in range(6):  # Nearest, Lanczos, bilinear, bicubic, box, Hamming.
        for size in [(11, 8), (23, 40), (60, 17), (1, 1), (97, 3), (7, 100)]:
            resized = photo.resize(size, Image.Resampling(code))
            expected[f"resize.{code}.{size[0]}x{size[1]}"] = np.asarray(resized)
    save_file({k: np.ascontiguousarray(v) for k, v in expected.items()},
              folder / "expected.safetensors")


if __name__ == "__main__":
    main()
