"""Writes tests/golden/images/odd: pictures that are unusual but that Pillow opens.

    python tests/models/image/make_odd_pictures.py tests/golden/images     # needs pillow, numpy, safetensors

odd/NAME.EXT, and odd.safetensors: NAME = convert("RGB") after ImageOps.exif_transpose; opens.NAME =
for each number of first bytes of pictures/NAME whether Pillow opens them.
"""

import io
import pathlib
import struct
import sys
import zlib

import numpy as np
from make_pictures import exif, wavy
from PIL import Image, ImageOps
from safetensors.numpy import save_file

XMP = '<x:xmpmeta><rdf:Description %s/></x:xmpmeta>'
BY_ATTRIBUTE = (XMP % 'tiff:Orientation="6"').encode()
BY_ELEMENT = b"<tiff:Orientation>8</tiff:Orientation>"


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def tiff(order, kind, value, count=1, magic=None):
    """A TIFF structure whose first directory holds an orientation of any type and some more."""
    mark = "<" if order == b"II" else ">"
    form = {3: "H", 4: "I", 8: "h", 9: "i"}[kind]
    data = struct.pack(f"{mark}{count}{form}", *[value] * count)
    entries = [(0x010F, 2, 8, struct.pack(mark + "I", 60))]
    entries.append((0x0112, kind, count, data.ljust(4, b"\0") if len(data) <= 4 else
                    struct.pack(mark + "I", 70)))
    block = order + (magic or struct.pack(mark + "H", 42)) + struct.pack(mark + "IH", 8, len(entries))
    for tag, of, number, at in entries:
        block += struct.pack(mark + "HHI", tag, of, number) + at
    block += struct.pack(mark + "I", 0)
    return block.ljust(60, b"\0") + b"Make\0\0\0\0".ljust(10, b"\0") + data


def jpegs():
    rgb = Image.fromarray(wavy(3))
    plain = saved(rgb, "JPEG", quality=92)
    first, rest = plain[:20], plain[20:]  # SOI and JFIF.
    tables = rest.index(b"\xff\xc0")
    turn = b"Exif\0\0" + tiff(b"II", 3, 6)
    xmp = b"http://ns.adobe.com/xap/1.0/\0"
    yield "behind_comment", plain[:2] + segment(0xFE, b"hello") + segment(0xE1, turn) + plain[2:]
    yield "behind_tables", first + rest[:tables] + segment(0xE1, turn) + rest[tables:]
    others = b"".join(segment(0xE0 + i, b"other\0" * 9) for i in (2, 3, 13, 1, 1))
    yield "behind_others", first + others + segment(0xE1, turn) + rest
    yield "behind_xmp", first + segment(0xE1, xmp + b"<x/>") + segment(0xE1, turn) + rest
    yield "fill_bytes", first + b"\xff\xff\xff" + segment(0xE1, turn) + rest
    big = b"Exif\0\0" + tiff(b"MM", 3, 8)
    yield "big_endian", first + segment(0xE1, big) + rest
    yield "as_long", first + segment(0xE1, b"Exif\0\0" + tiff(b"MM", 4, 5)) + rest
    yield "as_signed", first + segment(0xE1, b"Exif\0\0" + tiff(b"II", 8, 7)) + rest
    yield "out_of_line", first + segment(0xE1, b"Exif\0\0" + tiff(b"II", 3, 3, count=3)) + rest
    yield "swapped_magic", first + segment(0xE1, b"Exif\0\0" + tiff(b"MM", 3, 6, magic=b"*\0")) + rest
    yield "in_two", first + segment(0xE1, turn[:30]) + segment(0xE1, b"Exif\0\0" + turn[30:]) + rest
    yield "twice_named", first + segment(0xE1, b"Exif\0\0" + turn) + rest
    yield "of_nonsense", first + segment(0xE1, b"Exif\0\0" + tiff(b"II", 3, 99)) + rest
    yield "xmp_attribute", first + segment(0xE1, xmp + BY_ATTRIBUTE) + rest
    yield "xmp_element", first + segment(0xE1, xmp + BY_ELEMENT) + rest
    yield "exif_before_xmp", first + segment(0xE1, xmp + BY_ELEMENT) + segment(0xE1, turn) + rest
    yield "trailing_junk", plain + b"junk \xff\xd8" * 20
    yield "cmyk_plain", saved(rgb.convert("CMYK"), "JPEG", quality=95)
    # A scan in one go and other samplings than the usual: factors are changed in the frame.
    gray = saved(Image.fromarray(wavy(1)[..., 0]), "JPEG")
    at = gray.index(b"\xff\xc0") + 11
    yield "gray_2x2", gray[:at] + b"\x22" + gray[at + 1:]
    for name, subsampling in (("s422", "4:2:2"), ("s411", "4:1:1")):
        yield name, saved(rgb, "JPEG", quality=92, subsampling=subsampling)
    # Blocks of a larger picture, read as those of a small one with other factors.
    large = saved(rgb.resize((64, 48)), "JPEG", quality=92, subsampling=0)
    at = large.index(b"\xff\xc0")
    for name, factors in (("s440", "121111"), ("s_all_2x1", "212121"),
                          ("s_mixed", "221221"), ("s_colour", "112211"), ("s_4x1", "411141"),
                          ("s_1x4", "141111")):
        changed = bytearray(large)
        changed[at + 5 : at + 9] = struct.pack(">HH", 17, 23)
        changed[at + 11 : at + 18 : 3] = bytes.fromhex(factors)
        yield name, bytes(changed)
    yield "as_rgb", saved(rgb, "JPEG", quality=92, keep_rgb=True)


def pngs():
    rgb = Image.fromarray(wavy(3))
    Image.fromarray(wavy(4))
    gray = Image.fromarray(wavy(1)[..., 0])
    plain = saved(rgb, "PNG")
    header, data, end = plain[:33], plain[33:-12], plain[-12:]
    block = tiff(b"MM", 3, 6)
    raw = ("\nexif\n%8d\n%s\n" % (len(block), block.hex())).encode()
    raw_name, xmp_name = b"Raw profile type exif\0", b"XML:com.adobe.xmp\0"
    yield "no_end", plain[:-12]
    yield "no_checksum", plain[:-16]
    yield "half_end", plain[:-5]
    yield "wrong_checksum", plain[:-16] + b"abcd" + end
    yield "junk_for_end", plain[:-12] + b"\1\2\3\4\5\6\7\x80 and more"
    yield "junk_behind_end", plain + b"junk" * 9
    yield "exif_behind_pixels", header + data + chunk(b"eXIf", block) + end
    yield "exif_twice", header + chunk(b"eXIf", tiff(b"II", 3, 3)) + chunk(b"eXIf", block) + data + end
    yield "raw_profile", header + chunk(b"tEXt", raw_name + raw) + data + end
    yield "raw_profile_z", header + chunk(b"zTXt", raw_name + b"\0" + zlib.compress(raw)) + data + end
    yield "raw_profile_last", header + data + chunk(b"tEXt", raw_name + raw) + end
    itxt = xmp_name + b"\0\0\0\0"
    yield "xmp_png", header + chunk(b"iTXt", itxt + BY_ATTRIBUTE) + data + end
    packed = xmp_name + b"\1\0\0\0" + zlib.compress(BY_ELEMENT)
    yield "xmp_png_z", header + chunk(b"iTXt", packed) + data + end
    yield "split_pixels", header + b"".join(
        chunk(b"IDAT", data[8:-4][i:i + 50]) for i in range(0, len(data) - 12, 50)) + end
    yield "unknown_chunks", header + chunk(b"prVt", b"x" * 99) + data + chunk(b"npTc", b"y") + end
    deep = np.stack([wavy(1)[..., 0].astype(">u2") * 257 + i for i in range(3)], -1)

    def made(bits, colour, rows, interlace=0, extra=b""):
        size = struct.pack(">II5B", 23, 17, bits, colour, 0, 0, interlace)
        pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
        return plain[:8] + chunk(b"IHDR", size) + extra + chunk(b"IDAT", pixels) + end

    def adam7(image):
        for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2),
                               (0, 1, 2, 2), (1, 0, 2, 1)):
            for row in image[y0::dy, x0::dx]:
                yield row.tobytes()

    yield "deep_rgb", made(16, 2, [row.tobytes() for row in deep])
    yield "deep_gray", made(16, 0, [(row[:, 0] // 90).astype(">u2").tobytes() for row in deep])
    clear = chunk(b"tRNS", b"\0\7")
    yield "deep_gray_clear", made(16, 0, [(row[:, 0] // 90).astype(">u2").tobytes() for row in deep],
                                  extra=clear)
    yield "interlaced", made(8, 2, adam7(wavy(3)), interlace=1)
    yield "interlaced_alpha", made(8, 6, adam7(wavy(4)), interlace=1)
    yield "interlaced_no_end", made(8, 0, adam7(wavy(1)[..., 0]), interlace=1)[:-14]
    yield "rgb_clear", made(8, 2, [r.tobytes() for r in wavy(3)], extra=chunk(b"tRNS", b"\0\7" * 3))
    yield "gray_clear", saved(gray, "PNG", transparency=100)
    palette = bytes(range(192))
    rows = [(row[:, 0] % 64).astype("u1").tobytes() for row in wavy(1)]
    alphas = chunk(b"tRNS", bytes(range(64)))
    yield "palette_alphas", made(8, 3, rows, extra=chunk(b"PLTE", palette) + alphas)
    yield "palette_4", saved(rgb.quantize(12), "PNG", bits=4)
    yield "palette_1", saved(rgb.quantize(2), "PNG", bits=1)
    yield "palette_short", made(8, 3, rows, extra=chunk(b"PLTE", palette[:120]))
    yield "animated", saved(rgb, "PNG", save_all=True, append_images=[rgb.rotate(180)])
    for bits in (2, 4):
        levels = wavy(1)[..., 0] >> (8 - bits)
        rows = []
        for row in levels:
            text = "".join(f"{v:0{bits}b}" for v in row)
            text += "0" * (-len(text) % 8)
            rows.append(int(text, 2).to_bytes(len(text) // 8, "big"))
        yield f"gray_{bits}", made(bits, 0, rows)


def webps():
    rgb = Image.fromarray(wavy(3))
    options = {"lossless": True}
    yield "exif_named", saved(rgb, "WEBP", exif=b"Exif\0\0" + tiff(b"MM", 3, 6), **options)
    yield "exif_bare", saved(rgb, "WEBP", exif=tiff(b"II", 4, 8), **options)
    yield "xmp_webp", saved(rgb, "WEBP", xmp=BY_ELEMENT, **options)
    yield "turned_and_exif", saved(rgb, "WEBP", exif=exif(5), xmp=BY_ATTRIBUTE, **options)
    yield "webp_junk", saved(rgb, "WEBP", **options) + b"junk" * 7
    yield "loss_animated", saved(rgb, "WEBP", save_all=True, append_images=[rgb.rotate(180)],
                                 duration=100, **options)


def opened(data):
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def opens(data):
    try:
        opened(data)
    except Exception:  # Pillow raises whatever a broken file leads it to.
        return False
    return True


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "odd").mkdir(exist_ok=True)
    expected = {}
    for extension, kind in (("jpg", jpegs), ("png", pngs), ("webp", webps)):
        for name, data in kind():
            (folder / "odd" / f"{name}.{extension}").write_bytes(data)
            expected[name] = opened(data)
    for name in ("photo.jpg", "progressive.jpg", "cmyk.jpg", "gray_jpeg.jpg", "rgb.png",
                 "palette.png", "gray16.png", "lossless.webp", "lossy.webp", "turned_webp.webp"):
        data = (folder / "pictures" / name).read_bytes()
        flags = [opens(data[:size]) for size in range(len(data) + 1)]
        expected[f"opens.{name}"] = np.array(flags, np.uint8)
    save_file({k: np.ascontiguousarray(v) for k, v in expected.items()}, folder / "odd.safetensors")


if __name__ == "__main__":
    main()
