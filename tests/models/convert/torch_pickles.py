"""Writes files in torch.save's formats opcode by opcode, honest and hostile ones."""

import io
import math
import struct
import zipfile


def text(value):
    data = value.encode("utf-8")
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value):
    return b"J" + struct.pack("<i", value)


def sequence(*items):
    return b"(" + b"".join(items) + b"t"


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def storage(kind, key, elements, view=b""):
    pid = sequence(text("storage"), name("torch", kind), text(key), text("cpu"), integer(elements), view)
    return pid + b"Q"


def tensor(stored, offset, shape, strides):
    ordered = name("collections", "OrderedDict") + b")R"
    arguments = sequence(
        stored,
        integer(offset),
        sequence(*map(integer, shape)),
        sequence(*map(integer, strides)),
        b"\x89",
        ordered,
    )
    return name("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def parameter(value):
    ordered = name("collections", "OrderedDict") + b")R"
    return name("torch._utils", "_rebuild_parameter") + sequence(value, b"\x88", ordered) + b"R"


def dictionary(entries):
    items = b"".join(text(key) + value for key, value in entries.items())
    return b"}(" + items + b"u"


def program(body):
    return b"\x80\x02" + body + b"."


KINDS = {"F32": ("FloatStorage", 4), "F16": ("HalfStorage", 2), "I64": ("LongStorage", 8)}


def state_dict(tensors, legacy=False):
    """{name: (dtype, shape, bytes)} as pickled entries, storages and storages with their counts."""
    entries, storages, counts = {}, {}, {}
    for index, (key, (dtype, shape, data)) in enumerate(sorted(tensors.items())):
        kind, size = KINDS[dtype]
        stored = storage(kind, str(index), len(data) // size, b"N" if legacy else b"")
        strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
        entries[key] = tensor(stored, 0, shape, strides)
        storages[str(index)] = data
        counts[str(index)] = (len(data) // size, data)
    return entries, storages, counts


def zip_file(body, storages, byteorder=b"little"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", program(body))
        archive.writestr("archive/byteorder", byteorder)
        for key, data in storages.items():
            archive.writestr(f"archive/data/{key}", data)
    return out.getvalue()


def legacy_file(body, storages, little_endian=True):
    magic = 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
    flag = b"\x88" if little_endian else b"\x89"
    parts = [
        program(b"\x8a" + bytes([len(magic)]) + magic),
        program(integer(1001)),
        program(dictionary({"little_endian": flag})),
        program(body),
        program(b"](" + b"".join(text(key) for key in storages) + b"e"),
    ]
    for elements, data in storages.values():
        parts.append(struct.pack("<q", elements) + data)
    return b"".join(parts)


def save(path, body, storages, counts, container="zip"):
    """What torch.save writes of an object with the tensors of a state dict in it."""
    path.write_bytes(zip_file(body, storages) if container == "zip" else legacy_file(body, counts))
    return path


def checkpoint(path, tensors, key="model_state_dict", container="zip"):
    """What a trainer saves as {key: state dict}."""
    entries, storages, counts = state_dict(tensors, container == "legacy")
    return save(path, dictionary({key: dictionary(entries)}), storages, counts, container)
