import json
import random
import shutil
import struct

import pytest

import pickle_to_safetensors
import torch_pickles as pickles
from fixture_models import GOLDEN, read_safetensors
from restricted_unpickler import RefusedError

FORMS = GOLDEN / "longformer/checkpoint_forms"


def converted(directory):
    pickle_to_safetensors.convert(directory)
    return read_safetensors(directory / "model.safetensors")


def write(directory, content, name="pytorch_model.bin"):
    (directory / name).write_bytes(content)
    return directory


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


@pytest.mark.parametrize("form", ["model_bin_zip", "model_bin_legacy"])
def test_golden_forms_equal_the_safetensors_file(form, tmp_path):
    shutil.copy(FORMS / form / "pytorch_model.bin", tmp_path)
    found, ties = converted(tmp_path)
    expected, _ = read_safetensors(FORMS / "model/model.safetensors")
    # Tied tensors may be stored under either name.
    everything = {**found, **{gone: found[kept] for gone, kept in ties.items() if gone != "format"}}
    assert expected.keys() <= everything.keys()
    assert {name: everything[name] for name in expected} == expected
    extra = everything.keys() - expected.keys()
    assert extra == {"lm_head.decoder.weight", "lm_head.decoder.bias"}
    assert everything["lm_head.decoder.bias"] == everything["lm_head.bias"]


def both_formats(body, data, elements):
    return {
        "zip": pickles.zip_file(body, {"0": data}),
        "legacy": pickles.legacy_file(body, {"0": (elements, data)}),
    }


@pytest.mark.parametrize("container", ["zip", "legacy"])
def test_strides_views_and_ties(container, tmp_path):
    stored = pickles.storage("FloatStorage", "0", 6, b"N" if container == "legacy" else b"")
    body = pickles.dictionary(
        {
            "plain": pickles.tensor(stored, 0, [2, 3], [3, 1]),
            "transposed": pickles.tensor(stored, 0, [3, 2], [1, 3]),
            "column": pickles.tensor(stored, 1, [2], [3]),
            "repeated": pickles.tensor(stored, 4, [3], [0]),
            "scalar": pickles.tensor(stored, 5, [], []),
            "empty": pickles.tensor(stored, 6, [0, 4], [4, 1]),
            "tied": pickles.parameter(pickles.tensor(stored, 0, [2, 3], [3, 1])),
        }
    )
    data = floats(0, 1, 2, 3, 4, 5)
    tensors, metadata = converted(write(tmp_path, both_formats(body, data, 6)[container]))
    assert tensors == {
        "plain": ("F32", [2, 3], data),
        "transposed": ("F32", [3, 2], floats(0, 3, 1, 4, 2, 5)),
        "column": ("F32", [2], floats(1, 4)),
        "repeated": ("F32", [3], floats(4, 4, 4)),
        "scalar": ("F32", [], floats(5)),
        "empty": ("F32", [0, 4], b""),
    }
    assert metadata == {"format": "pt", "tied": "plain"}


def test_storage_views_of_old_files(tmp_path):
    view = pickles.sequence(pickles.text("v"), pickles.integer(2), pickles.integer(3))
    stored = pickles.storage("FloatStorage", "0", 6, view)
    body = pickles.dictionary({"x": pickles.tensor(stored, 1, [2], [1])})
    content = pickles.legacy_file(body, {"0": (6, floats(0, 1, 2, 3, 4, 5))})
    tensors, _ = converted(write(tmp_path, content))
    assert tensors == {"x": ("F32", [2], floats(3, 4))}


@pytest.mark.parametrize(
    "kind, dtype, size",
    [
        ("HalfStorage", "F16", 2),
        ("BFloat16Storage", "BF16", 2),
        ("DoubleStorage", "F64", 8),
        ("LongStorage", "I64", 8),
        ("BoolStorage", "BOOL", 1),
    ],
)
def test_element_types_stay(kind, dtype, size, tmp_path):
    data = bytes(range(4 * size))
    body = pickles.dictionary({"x": pickles.tensor(pickles.storage(kind, "0", 4), 0, [4], [1])})
    tensors, _ = converted(write(tmp_path, pickles.zip_file(body, {"0": data})))
    assert tensors == {"x": (dtype, [4], data)}


def one_tensor(key="x", value=1.0):
    stored = pickles.storage("FloatStorage", "0", 1)
    body = pickles.dictionary({key: pickles.tensor(stored, 0, [1], [1])})
    return pickles.zip_file(body, {"0": floats(value)})


def test_shards(tmp_path):
    write(tmp_path, one_tensor("a", 1.0), "pytorch_model-00001-of-00002.bin")
    write(tmp_path, one_tensor("b", 2.0), "pytorch_model-00002-of-00002.bin")
    index = {
        "weight_map": {
            "a": "pytorch_model-00001-of-00002.bin",
            "b": "pytorch_model-00002-of-00002.bin",
        }
    }
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    tensors, _ = converted(tmp_path)
    assert tensors == {"a": ("F32", [1], floats(1.0)), "b": ("F32", [1], floats(2.0))}


def test_shards_outside_the_directory_are_refused(tmp_path):
    index = {"weight_map": {"a": "../secret.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    with pytest.raises(RefusedError, match="secret.bin"):
        converted(tmp_path)


def test_finds_the_only_other_file(tmp_path):
    write(tmp_path, one_tensor(), "checkpoint_best.pt")
    write(tmp_path, b"not weights", "training_args.bin")
    assert converted(tmp_path)[0] == {"x": ("F32", [1], floats(1.0))}


def test_no_or_several_files_are_refused(tmp_path):
    with pytest.raises(RefusedError, match="found none"):
        converted(tmp_path)
    write(tmp_path, one_tensor(), "a.pt")
    write(tmp_path, one_tensor(), "b.pth")
    with pytest.raises(RefusedError, match="found a.pt, b.pth"):
        converted(tmp_path)


def test_an_existing_file_is_kept_without_force(tmp_path):
    write(tmp_path, one_tensor())
    (tmp_path / "model.safetensors").write_bytes(b"mine")
    with pytest.raises(RefusedError, match="--force"):
        pickle_to_safetensors.convert(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == b"mine"
    pickle_to_safetensors.convert(tmp_path, force=True)
    assert "x" in read_safetensors(tmp_path / "model.safetensors")[0]


def reduce_call(module, attribute, argument):
    return pickles.name(module, attribute) + pickles.sequence(pickles.text(argument)) + b"R"


@pytest.mark.parametrize(
    "module, attribute",
    [("os", "system"), ("builtins", "eval"), ("torch", "load"), ("torch._utils", "_rebuild_sparse_tensor"),
     ("collections", "Counter"), ("numpy", "dtype")],
)
@pytest.mark.parametrize("container", ["zip", "legacy"])
def test_other_names_are_refused_by_name_and_not_run(module, attribute, container, tmp_path):
    marker = tmp_path / "ran"
    body = pickles.dictionary({"x": reduce_call(module, attribute, f"touch {marker}")})
    with pytest.raises(RefusedError, match=f"{module}.{attribute}"):
        converted(write(tmp_path, both_formats(body, b"", 0)[container]))
    assert not marker.exists()
    assert not (tmp_path / "model.safetensors").exists()


def broken_bodies():
    stored = pickles.storage("FloatStorage", "0", 2)
    yield "past the storage", pickles.tensor(stored, 1, [2], [1])
    yield "stride past the storage", pickles.tensor(stored, 0, [2], [2])
    yield "negative stride", pickles.tensor(stored, 1, [2], [-1])
    yield "negative offset", pickles.tensor(stored, -1, [1], [1])
    yield "negative extent", pickles.tensor(stored, 0, [-1], [1])
    yield "strides missing", pickles.tensor(stored, 0, [1, 1], [1])
    yield "no storage", pickles.tensor(pickles.integer(3), 0, [1], [1])
    yield "a number", pickles.integer(3)
    yield "a nested dictionary", pickles.dictionary({"y": pickles.tensor(stored, 0, [1], [1])})
    yield "unknown reference", pickles.sequence(pickles.text("module")) + b"Q"
    yield "missing storage", pickles.tensor(pickles.storage("FloatStorage", "9", 2), 0, [1], [1])
    yield "other size", pickles.tensor(pickles.storage("FloatStorage", "0", 3), 0, [1], [1])


@pytest.mark.parametrize("what, body", list(broken_bodies()))
def test_broken_tensors_are_refused(what, body, tmp_path):
    content = pickles.zip_file(pickles.dictionary({"x": body}), {"0": floats(1, 2)})
    with pytest.raises(RefusedError):
        converted(write(tmp_path, content))
    assert list(tmp_path.iterdir()) == [tmp_path / "pytorch_model.bin"]


def test_big_endian_is_refused(tmp_path):
    body = pickles.dictionary({})
    with pytest.raises(RefusedError, match="big-endian"):
        converted(write(tmp_path, pickles.zip_file(body, {}, byteorder=b"big")))
    with pytest.raises(RefusedError, match="big-endian"):
        converted(write(tmp_path, pickles.legacy_file(body, {}, little_endian=False)))


@pytest.mark.parametrize("form", ["model_bin_zip", "model_bin_legacy"])
def test_mutated_files_are_converted_or_refused(form, tmp_path):
    good = (FORMS / form / "pytorch_model.bin").read_bytes()
    random.seed(5)
    refused = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(random.randint(1, 4)):
            # The pickles are at the front of both forms.
            data[random.randrange(min(len(data), 4000))] = random.randrange(256)
        if random.random() < 0.3:
            del data[random.randrange(len(data)) :]
        write(tmp_path, bytes(data))
        try:
            pickle_to_safetensors.convert(tmp_path, force=True)
        except RefusedError as error:
            assert str(error)
            refused += 1
    assert refused > 50


def test_command_line(tmp_path, capsys):
    assert pickle_to_safetensors.main([str(tmp_path)]) == 1
    assert "found none" in capsys.readouterr().err
    write(tmp_path, one_tensor())
    assert pickle_to_safetensors.main([str(tmp_path)]) == 0
    assert "1 tensors, 4 bytes" in capsys.readouterr().out
