"""Writes tests/fuzz/corpus/torch_file: small files in torch.save's formats, honest and hostile.

    python tests/models/checkpoint/make_torch_files.py tests/fuzz/corpus/torch_file
"""

import pathlib
import struct
import sys
import zipfile
import io

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "convert"))
from torch_pickles import (dictionary, integer, legacy_file, name, parameter, program, sequence,
                           storage, tensor, text, zip_file)

FLOATS = struct.pack("<6f", *range(6))
WHOLE = storage("FloatStorage", "0", 6)
DOUBLES = struct.pack("<2d", 0.1, -2.5)


def zipped(body, **storages):
    return zip_file(body, {key[1:]: data for key, data in storages.items()})


def of(value, data=FLOATS):
    return zipped(dictionary({"w": value}), _0=data)


def compressed():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", program(dictionary({})))
    return out.getvalue()


def moved_directory(data, change):
    """The file with another value in its end of central directory."""
    changed = bytearray(data)
    change(changed, data.rindex(b"PK\5\6"))
    return bytes(changed)


def overlapping():
    data = zipped(dictionary({"w": tensor(WHOLE, 0, [6], [1])}), _0=FLOATS)
    second = data.index(b"PK\1\2", data.index(b"PK\1\2") + 4)
    changed = bytearray(data)
    changed[second + 42 : second + 46] = bytes(4)  # Its header is that of the first.
    return bytes(changed)


def files():
    plain = of(tensor(WHOLE, 0, [2, 3], [3, 1]))
    yield "plain", plain
    yield "parameter", of(parameter(tensor(WHOLE, 3, [3], [1])))
    yield "transposed", of(tensor(WHOLE, 0, [3, 2], [1, 3]))
    yield "scalar_and_empty", zipped(dictionary({"s": tensor(WHOLE, 5, [], []),
                                                 "e": tensor(WHOLE, 0, [0, 7], [7, 1])}), _0=FLOATS)
    yield "doubles", of(tensor(storage("DoubleStorage", "0", 2), 0, [2], [1]), DOUBLES)
    old = dictionary({"w": tensor(storage("FloatStorage", "0", 6, b"N"), 0, [6], [1])})
    yield "legacy", legacy_file(old, {"0": (6, FLOATS)})
    view = sequence(text("v"), integer(2), integer(3))
    part = dictionary({"w": tensor(storage("FloatStorage", "0", 6, view), 1, [2], [1])})
    yield "legacy_view", legacy_file(part, {"0": (6, FLOATS)})
    yield "bad_legacy_beyond", legacy_file(old, {"0": (1 << 60, FLOATS)})
    yield "bad_legacy_big_endian", legacy_file(old, {"0": (6, FLOATS)}, little_endian=False)
    yield "bad_call", zipped(name("os", "system") + sequence(text("true")) + b"R", _0=FLOATS)
    stacked = text("builtins") + text("eval") + b"\x93" + sequence(text("1")) + b"R"
    yield "bad_stack_global", zipped(stacked, _0=FLOATS)
    yield "bad_opcode", zipped(b"Itrue\n", _0=FLOATS)
    yield "bad_entry", zipped(dictionary({"epoch": integer(3)}), _0=FLOATS)
    yield "bad_root", zipped(sequence(integer(3)), _0=FLOATS)
    yield "bad_memo", zipped(b"h\7", _0=FLOATS)
    # Each level holds the one before twice: nothing may walk it.
    bomb = b")q\0" + b"".join(b"h%ch%c\x86q%c0" % (i, i, i + 1) for i in range(99))
    yield "bad_memo_bomb", zipped(bomb + dictionary({"w": b"h\x63"}), _0=FLOATS)
    yield "bad_deep_nesting", zipped(b")" + b"\x85" * 20_000, _0=FLOATS)
    yield "bad_deep_stack", zipped(b"(" * 20_000, _0=FLOATS)
    yield "bad_pop", zipped(b"0" * 9, _0=FLOATS)
    yield "bad_text_beyond", zipped(b"\x8d" + b"\xff" * 8, _0=FLOATS)
    yield "bad_beyond", of(tensor(WHOLE, 1, [6], [1]))
    yield "bad_stride", of(tensor(WHOLE, 5, [2], [-1]))
    yield "bad_side", of(tensor(WHOLE, 0, [-2], [1]))
    yield "bad_offset", of(tensor(WHOLE, -1, [2], [1]))
    huge = b"\x8a\x08" + struct.pack("<q", (1 << 63) - 1)
    big = sequence(WHOLE, huge, sequence(integer(2)), sequence(huge))
    yield "bad_overflow", of(name("torch._utils", "_rebuild_tensor_v2") + big + b"R")
    many = sequence(WHOLE, integer(0), sequence(huge, huge), sequence(integer(0), integer(0)))
    yield "bad_product", of(name("torch._utils", "_rebuild_tensor_v2") + many + b"R")
    yield "bad_repeated", of(tensor(WHOLE, 0, [1 << 20, 6], [0, 1]))
    yield "bad_storage_size", of(tensor(storage("FloatStorage", "0", 7), 0, [6], [1]))
    yield "bad_storage_missing", zipped(dictionary({"w": tensor(WHOLE, 0, [6], [1])}))
    other = storage("HalfStorage", "0", 6)
    yield "bad_storage_twice", zipped(dictionary({"a": tensor(WHOLE, 0, [6], [1]),
                                                  "b": tensor(other, 0, [6], [1])}), _0=FLOATS)
    twice = text("w") + tensor(WHOLE, 0, [6], [1])
    yield "bad_name_twice", zipped(b"}(" + twice * 2 + b"u", _0=FLOATS)
    yield "bad_byte_order", zip_file(dictionary({}), {}, byteorder=b"big")
    yield "bad_compressed", compressed()
    yield "bad_overlap", overlapping()
    yield "bad_truncated", plain[:-30]
    yield "bad_directory_beyond", moved_directory(
        plain, lambda d, at: d.__setitem__(slice(at + 16, at + 20), b"\xff\xff\xff\x7f"))
    yield "bad_entry_count", moved_directory(
        plain, lambda d, at: d.__setitem__(slice(at + 10, at + 12), b"\xff\xff"))
    yield "bad_no_torch_file", b"not a checkpoint"


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files():
        (folder / file).write_bytes(data)


if __name__ == "__main__":
    main()
