"""A fairseq checkpoint made from a fixture's weights becomes the fixture's directory again."""

import json

import pytest

import fairseq_transformer_ls as converter
import torch_pickles as pickles
from fixture_models import GOLDEN, read_safetensors

CASE = GOLDEN / "transformer_ls_lm/blocks_enwik8_dict/model"
CONFIG = json.loads((CASE / "config.json").read_text())


def boolean(value):
    return b"\x88" if value else b"\x89"


def hyper_parameters(**changes):
    names = ("d_model", "n_head", "d_inner", "n_layer", "window_len", "chunk_size", "chunk_rank")
    names += ("clamp_len", "cpos_clamp_len")
    entries = {name: pickles.integer(CONFIG[name]) for name in names}
    for name in ("use_bias", "pre_ln", "use_gelu"):
        entries[name] = boolean(CONFIG[name])
    # What training adds and conversion does not need.
    entries["mem_len"] = pickles.integer(64)
    return {**entries, **changes}


def checkpoint(tensors, model_cfg):
    """A file as fairseq writes it: every tensor in a storage of its own, optimizer state beside."""
    state, storages, _ = pickles.state_dict(tensors)
    body = pickles.dictionary(
        {
            "args": b"N",
            "cfg": pickles.dictionary({"model": pickles.dictionary(model_cfg)}),
            "model": pickles.dictionary(state),
            "optimizer_history": b"]",
            "extra_state": pickles.dictionary({"epoch": pickles.integer(3)}),
        }
    )
    return pickles.zip_file(body, storages)


@pytest.fixture
def tensors():
    return read_safetensors(CASE / "model.safetensors")[0]


def convert(directory, tensors, *flags, model_cfg=None, dictionary=CASE / "dict.txt"):
    source = directory / "checkpoint.pt"
    source.write_bytes(checkpoint(tensors, model_cfg or hyper_parameters()))
    arguments = [str(source), str(dictionary), str(directory / "out"), "--task", "enwik8", *flags]
    return converter.main(arguments)


def test_the_fixture_comes_back(tmp_path, tensors):
    assert convert(tmp_path, tensors, "--schedule", "blocks", "--block-len", "16", "--mem-len", "64") == 0
    found, _ = read_safetensors(tmp_path / "out/model.safetensors")
    tied = "decoder.model.out_emb.weight"
    assert found == {name: tensor for name, tensor in tensors.items() if name != tied}
    config = json.loads((tmp_path / "out/config.json").read_text())
    for name, value in config.items():
        assert CONFIG[name] == value, name
    assert (tmp_path / "out/dict.txt").read_bytes() == (CASE / "dict.txt").read_bytes()


def test_paper_is_the_default_and_has_no_lengths(tmp_path, tensors):
    assert convert(tmp_path, tensors) == 0
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["schedule"] == "paper"
    assert "block_len" not in config and "mem_len" not in config


def test_an_existing_file_is_kept_unless_forced(tmp_path, tensors, capsys):
    assert convert(tmp_path, tensors) == 0
    assert convert(tmp_path, tensors) == 1
    assert "--force" in capsys.readouterr().err
    assert convert(tmp_path, tensors, "--force") == 0


def changed_copy(tensors):
    dtype, shape, data = tensors["decoder.model.in_emb.weight"]
    return {**tensors, "decoder.model.out_emb.weight": (dtype, shape, data[:-1] + b"\x40")}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: {n: v for n, v in t.items() if "layers.1.norm2.bias" not in n}, "layers.1.norm2.bias"),
        (lambda t: {**t, "decoder.model.extra": t["decoder.model.out_emb.bias"]}, "extra"),
        (lambda t: {"module." + n: v for n, v in t.items()}, "in_emb.weight"),
        (lambda t: {**t, "decoder.model.layers.0.norm1.bias": t["decoder.model.out_emb.bias"]}, "norm1.bias"),
        (changed_copy, "ties"),
    ],
)
def test_tensors_are_refused_by_name(tmp_path, tensors, capsys, change, message):
    assert convert(tmp_path, change(tensors)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out/model.safetensors").exists()


@pytest.mark.parametrize("name", ["pre_ln", "window_len", "clamp_len"])
def test_hyper_parameters_are_never_guessed(tmp_path, tensors, capsys, name):
    assert convert(tmp_path, tensors, model_cfg=hyper_parameters(**{name: b"N"})) == 1
    assert f"cfg.model.{name}" in capsys.readouterr().err


def test_a_dictionary_of_another_size_is_refused(tmp_path, tensors, capsys):
    short = tmp_path / "short.txt"
    short.write_text("32 5\n101 4\n")
    assert convert(tmp_path, tensors, dictionary=short) == 1
    assert "6 ids; the embedding has 208" in capsys.readouterr().err


def test_blocks_need_their_lengths(tmp_path, tensors, capsys):
    assert convert(tmp_path, tensors, "--schedule", "blocks", "--block-len", "24") == 1
    assert "--block-len" in capsys.readouterr().err
