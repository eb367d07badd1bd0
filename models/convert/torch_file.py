"""The two container formats of torch.save: a zip archive (since 1.6) and, before, a sequence of
pickles with the raw storages behind them. Storages are read when asked for, one at a time."""

import io
import struct
import zipfile
import zlib

import restricted_unpickler
from restricted_unpickler import RefusedError

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001

# Exceptions of the zipfile module for broken, encrypted or unusual archives.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)


class ZipFile:
    """<stem>/data.pkl and <stem>/data/<key>. `check` makes {name: Tensor} of the pickled object, in
    which `foreign` objects are allowed or not."""

    def __init__(self, path, check=restricted_unpickler.check_state_dict, foreign=False):
        try:
            self._archive = zipfile.ZipFile(path)
        except _ZIP_ERRORS as error:
            raise RefusedError(f"a broken zip archive: {error}") from error
        names = self._archive.namelist()
        pickles = [n for n in names if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(pickles) != 1:
            raise RefusedError("a zip archive, but not one that torch.save wrote: no data.pkl")
        self._stem = pickles[0].removesuffix("data.pkl")
        if self._stem + "byteorder" in names:
            order = self._read("byteorder")
            if order != b"little":
                raise RefusedError(f"written on a big-endian machine ({order!r})")
        self.tensors = check(restricted_unpickler.load(io.BytesIO(self._read("data.pkl")), foreign))

    def read_storage(self, storage):
        return _checked(storage, self._read(f"data/{storage.key}"))

    def _read(self, name):
        try:
            return self._archive.read(self._stem + name)
        except _ZIP_ERRORS as error:
            raise RefusedError(f"cannot read {self._stem}{name}: {error}") from error


class LegacyFile:
    """Pickles of a magic number, a protocol number, system facts, the object and the storage keys;
    then for each key its count of elements (int64) and its bytes. `check` and `foreign` as above."""

    def __init__(self, path, check=restricted_unpickler.check_state_dict, foreign=False):
        self._file = open(path, "rb")
        if restricted_unpickler.load(self._file) != _LEGACY_MAGIC:
            raise RefusedError("not a file that torch.save wrote")
        protocol = restricted_unpickler.load(self._file)
        if protocol != _LEGACY_PROTOCOL:
            raise RefusedError(f"protocol {protocol}, expected {_LEGACY_PROTOCOL}")
        system = restricted_unpickler.load(self._file)
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise RefusedError("written on a big-endian machine")
        loaded = restricted_unpickler.load(self._file, foreign)
        self.tensors = check(loaded)
        # Storages of tensors that nobody selects lie in between and have to be skipped.
        sizes = {t.storage.key: t.storage.dtype.size for t in restricted_unpickler.tensors_in(loaded)}
        self._places = self._find_storages(restricted_unpickler.load(self._file), sizes)

    def _find_storages(self, keys, sizes):
        places = {}
        for key in map(str, keys if isinstance(keys, list) else []):
            count = self._file.read(8)
            if len(count) != 8 or key not in sizes:
                raise RefusedError(f"storage {key!r}: truncated, or used by no tensor")
            elements = struct.unpack("<q", count)[0]
            places[key] = (self._file.tell(), elements * sizes[key])
            if elements < 0:
                raise RefusedError(f"storage {key!r} has {elements} elements")
            self._file.seek(elements * sizes[key], 1)
        return places

    def read_storage(self, storage):
        if storage.key not in self._places:
            raise RefusedError(f"storage {storage.key!r} is not in the file")
        begin, size = self._places[storage.key]
        self._file.seek(begin)
        return _checked(storage, self._file.read(size))


def _checked(storage, data):
    expected = storage.elements * storage.dtype.size
    if len(data) != expected:
        raise RefusedError(f"storage {storage.key!r} has {len(data)} bytes, expected {expected}")
    return data


def open_file(path, check=restricted_unpickler.check_state_dict, foreign=False):
    """Opens a checkpoint; `check` makes {name: Tensor} of the object in it. `foreign`: objects of
    unknown classes stand beside the tensors."""
    return (ZipFile if zipfile.is_zipfile(path) else LegacyFile)(path, check, foreign)


_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def tensor_bytes(tensor, storage_data):
    """The tensor's elements in row-major order; strides may be anything inside the storage."""
    size = tensor.storage.dtype.size
    if tensor.elements == 0:
        return b""
    if tensor.is_contiguous():
        begin = tensor.offset * size
        return storage_data[begin : begin + tensor.bytes]
    elements = memoryview(storage_data).cast(_FORMATS[size])
    parts = []

    def gather(axis, offset):
        extent, stride = tensor.shape[axis], tensor.strides[axis]
        if axis + 1 < len(tensor.shape):
            for i in range(extent):
                gather(axis + 1, offset + i * stride)
        elif stride == 0:
            parts.append(elements[offset : offset + 1].tobytes() * extent)
        else:
            parts.append(elements[offset : offset + (extent - 1) * stride + 1 : stride].tobytes())

    gather(0, tensor.offset)
    return b"".join(parts)
