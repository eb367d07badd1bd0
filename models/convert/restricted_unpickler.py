"""Reads the pickles inside PyTorch checkpoints without PyTorch and without running code.

A pickle is a program: it may call anything it can import. This one can import exactly what a
state dict needs (tensors, their storages, dictionaries) and every other name is refused, so the
worst a hostile file can do is to fail.
"""

import collections
import dataclasses
import math
import pickle


class RefusedError(Exception):
    """The file is not a plain state dict, or is broken; the message says how."""


@dataclasses.dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: its safetensors name and bytes."""

    name: str
    size: int


STORAGE_TYPES = {
    "FloatStorage": ElementType("F32", 4),
    "HalfStorage": ElementType("F16", 2),
    "BFloat16Storage": ElementType("BF16", 2),
    "DoubleStorage": ElementType("F64", 8),
    "LongStorage": ElementType("I64", 8),
    "IntStorage": ElementType("I32", 4),
    "ShortStorage": ElementType("I16", 2),
    "CharStorage": ElementType("I8", 1),
    "ByteStorage": ElementType("U8", 1),
    "BoolStorage": ElementType("BOOL", 1),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """A run of elements in the file, by key; `start` counts elements inside it."""

    key: str
    dtype: ElementType
    elements: int
    start: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """A strided view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple

    @property
    def elements(self):
        return math.prod(self.shape)

    @property
    def bytes(self):
        return self.elements * self.storage.dtype.size

    def is_contiguous(self):
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class _RebuildTensor:
    """torch._utils._rebuild_tensor_v2. An object without attributes, so that a pickle cannot
    change it."""

    __slots__ = ()

    def __call__(self, storage, offset, shape, strides, *unused):
        if not isinstance(storage, Storage):
            raise RefusedError("a tensor without a storage")
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or not all(map(_is_count, numbers)):
            raise RefusedError(f"a tensor with offset {offset}, shape {shape}, strides {strides}")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
        if math.prod(shape) > 0 and last >= storage.elements:
            raise RefusedError(
                f"a tensor of shape {tuple(shape)} reaches element {last} of a storage that has "
                f"{storage.elements}"
            )
        return Tensor(storage, storage.start + offset, tuple(shape), tuple(strides))


class _RebuildParameter:
    """torch._utils._rebuild_parameter: a tensor and what training needs."""

    __slots__ = ()

    def __call__(self, tensor, *unused):
        if not isinstance(tensor, Tensor):
            raise RefusedError("a parameter that is not a tensor")
        return tensor


class _Unchangeable(type):
    """A class that a pickle cannot change."""

    def __setattr__(cls, name, value):
        raise RefusedError(f"the pickle sets {name!r} of a class")


class Namespace(metaclass=_Unchangeable):
    """argparse.Namespace: the options of a training by name, plain data."""


_ALLOWED = {
    ("argparse", "Namespace"): Namespace,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
    **{("torch", name): dtype for name, dtype in STORAGE_TYPES.items()},
}


class Foreign:
    """Stands for an object of a class that is not loaded, an optimiser's or a scheduler's. It takes
    whatever the pickle does to it and keeps nothing."""

    __slots__ = ()

    def __new__(cls, *unused, **more):
        return object.__new__(cls)

    def __init__(self, *unused, **more):
        pass

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    def append(self, value):
        pass


class RestrictedUnpickler(pickle.Unpickler):
    """An unpickler of state dicts; tensors come out as Tensor, storages are not read. With `foreign`,
    unknown classes come out as Foreign, for files that hold more than the state dict."""

    def __init__(self, file, foreign=False):
        super().__init__(file)
        self._foreign = foreign

    def find_class(self, module, name):
        try:
            return _ALLOWED[module, name]
        except KeyError:
            if self._foreign:
                return Foreign
            raise RefusedError(
                f"the pickle asks for {module}.{name}, which a state dict does not need; refused"
            ) from None

    def persistent_load(self, pid):
        if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
            raise RefusedError(f"an unknown kind of reference: {str(pid)[:80]}")
        _, dtype, key, _, elements, *view = pid
        if not isinstance(dtype, ElementType) or not _is_count(elements):
            raise RefusedError(f"an unknown storage: {str(pid)[:80]}")
        start = 0
        if view and view[0] is not None:
            # Files before 2017: a storage that is part of another one.
            _, start, size = view[0]
            if not _is_count(start) or not _is_count(size) or start + size > elements:
                raise RefusedError(f"a storage view outside its storage: {view[0]}")
        return Storage(str(key), dtype, elements, start)


def load(file, foreign=False):
    """Unpickles one object; anything a broken stream can raise becomes RefusedError."""
    try:
        return RestrictedUnpickler(file, foreign).load()
    except RefusedError:
        raise
    except Exception as error:  # The pickle module raises whatever the stream led it to.
        raise RefusedError(f"not a readable pickle: {type(error).__name__}: {error}") from error


def check_state_dict(value):
    """Returns the dictionary name -> Tensor, or refuses."""
    if not isinstance(value, dict):
        raise RefusedError(f"expected a dictionary of tensors, found {type(value).__name__}")
    for name, tensor in value.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise RefusedError(
                f"entry {str(name)[:80]!r} is {type(tensor).__name__}, expected a tensor; only "
                "plain state dicts are converted"
            )
    return dict(value)


def tensors_in(value):
    """Every Tensor inside nested dictionaries, lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, Namespace):
        yield from tensors_in(vars(value))


def entry(value, key):
    """value[key], a dictionary of tensors inside what a trainer saved."""
    if not isinstance(value, dict) or key not in value:
        found = ", ".join(map(str, list(value)[:8])) if isinstance(value, dict) else "no dictionary"
        raise RefusedError(f"no {key!r} in it: {found}")
    return check_state_dict(value[key])
