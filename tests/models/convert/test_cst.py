"""Composite Slice checkpoints become model directories: the fixtures, packed as trainers save them,
give their own directories back; anything else is refused by name."""

import json

import numpy as np
import pytest

import cst
from fixture_models import GOLDEN, cases, read_safetensors
from torch_pickles import checkpoint

FAMILY = GOLDEN / "cst"


def fixture(case):
    model = FAMILY / case / "model"
    tensors, _ = read_safetensors(model / "model.safetensors")
    return tensors, model / "config.json"


@pytest.mark.parametrize("case", cases("cst"))
def test_fixtures_come_back(case, tmp_path):
    tensors, config = fixture(case)
    path = checkpoint(tmp_path / "model.pt", tensors)
    assert cst.main([str(path), str(config), str(tmp_path / "out"),
                     "--entry", "model_state_dict"]) == 0
    found, _ = read_safetensors(tmp_path / "out/model.safetensors")
    assert found == tensors
    assert json.loads((tmp_path / "out/config.json").read_text()) == json.loads(config.read_text())


def test_a_prefix_comes_off(tmp_path, capsys):
    tensors, config = fixture("lra_L8")
    path = checkpoint(tmp_path / "m", {"module." + name: value for name, value in tensors.items()})
    arguments = [str(path), str(config), str(tmp_path / "out"), "--entry", "model_state_dict"]
    assert cst.main(arguments) == 1
    assert "module." in capsys.readouterr().err
    assert cst.main([*arguments, "--prefix", "module."]) == 0
    found, _ = read_safetensors(tmp_path / "out/model.safetensors")
    assert found == tensors


def test_clusters_turn_around(tmp_path, capsys):
    tensors, config = fixture("ar_adaptive")
    reversed_rows = dict(tensors)
    for name in ("lm_head.cluster_weight", "lm_head.cluster_bias"):
        dtype, shape, data = tensors[name]
        rows = np.frombuffer(data, np.float32).reshape(shape)[::-1]
        reversed_rows[name] = (dtype, shape, rows.tobytes())
    path = checkpoint(tmp_path / "m", reversed_rows)
    arguments = [str(path), str(config), str(tmp_path / "out"), "--entry", "model_state_dict",
                 "--reversed-clusters"]
    assert cst.main(arguments) == 0
    found, _ = read_safetensors(tmp_path / "out/model.safetensors")
    assert found == tensors
    other, other_config = fixture("ar_L4_alpha3")
    path = checkpoint(tmp_path / "n", other)
    assert cst.main([str(path), str(other_config), str(tmp_path / "none"), "--entry",
                     "model_state_dict", "--reversed-clusters"]) == 1
    assert "adaptive" in capsys.readouterr().err


SELF = "cst.encoder.layer.0.attention.self."


@pytest.mark.parametrize("change, message", [
    (lambda t: t.pop(SELF + "key.bias"), "self.key.bias"),
    (lambda t: t.update({SELF + "key_global.bias": ("F32", [1], b"\0" * 4)}), "key_global.bias"),
    (lambda t: t.update({"classifier.dense.bias": ("F32", [2], b"\0" * 8)}),
     "classifier.dense.bias"),
    (lambda t: t.pop("cst.ms_vipe.local_embeddings.weight"), "local_embeddings"),
])
def test_what_does_not_fit_is_refused_by_name(change, message, tmp_path, capsys):
    tensors, config = fixture("lra_L8")
    change(tensors)
    path = checkpoint(tmp_path / "m", tensors)
    assert cst.main([str(path), str(config), str(tmp_path / "out"),
                     "--entry", "model_state_dict"]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_words_tied_to_something_else_are_refused(tmp_path, capsys):
    tensors, config = fixture("ar_L4_alpha3")
    tensors["lm_head.weight"] = tensors["cst.embeddings.word_embeddings.weight"]
    path = checkpoint(tmp_path / "m", tensors)
    assert cst.main([str(path), str(config), str(tmp_path / "out"),
                     "--entry", "model_state_dict"]) == 1
    assert "lm_head.weight" in capsys.readouterr().err
