"""Checkpoints of the Long Range Arena trainer become model directories: the fixtures, packed as the
trainer saves them, give their own directories back; anything else is refused by name."""

import json

import pytest

import transformer_ls_text
from fixture_models import GOLDEN, cases, fixture, read_safetensors
from torch_pickles import checkpoint

FAMILY = "transformer_ls_text"


def arguments(path, out, config, *more):
    return [str(path), str(out), "--heads", str(config["heads"]), "--window",
            str(config["window"]), "--cls-mode", config["cls_mode"], "--layers",
            str(config["layers"]), *more]


@pytest.mark.parametrize("container", ["zip", "legacy"])
@pytest.mark.parametrize("case", cases(FAMILY))
def test_fixtures_come_back(case, container, tmp_path):
    tensors, config = fixture(FAMILY, case)
    path = checkpoint(tmp_path / "lra_output.model", tensors, container=container)
    assert transformer_ls_text.main(arguments(path, tmp_path / "out", config)) == 0
    found, _ = read_safetensors(tmp_path / "out/model.safetensors")
    assert found == tensors
    written = json.loads((tmp_path / "out/config.json").read_text())
    for key in ("model_type", "architectures", "vocab_size", "d", "heads", "layers", "ff",
                "max_seq_len", "window", "rank", "cls_mode", "tied_weights", "num_labels"):
        assert written[key] == config[key], key


def test_the_tokenizer_of_a_task(tmp_path):
    tensors, config = fixture(FAMILY, "listops_w8_r32")
    path = checkpoint(tmp_path / "m", tensors)
    vocabulary = GOLDEN / FAMILY / "listops_w8_r32/model/vocab.json"
    options = arguments(path, tmp_path / "out", config, "--task", "listops")
    assert transformer_ls_text.main(options) == 1
    assert transformer_ls_text.main([*options, "--vocabulary", str(vocabulary)]) == 0
    assert (tmp_path / "out/vocab.json").read_bytes() == vocabulary.read_bytes()
    written = json.loads((tmp_path / "out/tokenizer_config.json").read_text())
    assert written["tokenizer_class"] == "LRAWordTokenizer"
    assert written["model_max_length"] == 256


@pytest.mark.parametrize("change, message", [
    (lambda t: t.pop("model.norm.bias"), "model.norm.bias"),
    (lambda t: t.update({"model.transformer_0.mha.conv.weight": ("F32", [1], b"\0" * 4)}),
     "mha.conv.weight"),
    (lambda t: t.update({"model.norm.bias": ("F32", [2], b"\0" * 8)}), "model.norm.bias"),
    (lambda t: t.pop("model.cls_embed"), "cls_embed"),
    (lambda t: t.pop("seq_classifer.mlpblock.0.weight"), "seq_classifer.mlpblock.0.weight"),
])
def test_what_does_not_fit_is_refused_by_name(change, message, tmp_path, capsys):
    tensors, config = fixture(FAMILY, "interior_mask")
    change(tensors)
    path = checkpoint(tmp_path / "m", tensors)
    assert transformer_ls_text.main(arguments(path, tmp_path / "out", config)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_other_checkpoints_are_refused(tmp_path, capsys):
    tensors, config = fixture(FAMILY, "interior_mask")
    path = checkpoint(tmp_path / "m", tensors, key="model")
    assert transformer_ls_text.main(arguments(path, tmp_path / "out", config)) == 1
    assert "model_state_dict" in capsys.readouterr().err
