"""Checkpoints of allenai's LongformerEncoderDecoder, made from a fixture's weights, become the
fixture's directory again; what LED cannot compute is refused by name."""

import json

import pytest

import allenai_led as converter
import torch_pickles as pickles
from fixture_models import GOLDEN, fixture, read_safetensors

FIXTURE = GOLDEN / "led/text_summarize/model"
SWITCHES = {"attention_mode": "sliding_chunks", "attention_dilation": None,
            "extra_pos_embeddings": 2, "normalize_embedding": True, "scale_embedding": False,
            "gradient_checkpointing": True}


def source(path, tensors, config, unused=converter.UNUSED_ROWS, **changes):
    """The fixture as allenai's class saved it, with rows of garbage before the positions."""
    before = {}
    for name, (dtype, shape, data) in tensors.items():
        if name in converter.TABLES:
            data, shape = b"\x77" * (4 * shape[1] * unused) + data, [shape[0] + unused, shape[1]]
        before[name.replace("led.", "model.", 1)] = dtype, shape, data
    state, storages, _ = pickles.state_dict(before)
    path.mkdir()
    (path / "pytorch_model.bin").write_bytes(pickles.zip_file(pickles.dictionary(state), storages))
    layers = config["encoder_layers"]
    windows = config["attention_window"]
    windows = windows if isinstance(windows, list) else [windows] * layers
    given = config | SWITCHES | {
        "architectures": ["LongformerEncoderDecoderForConditionalGeneration"], "model_type": "bart",
        "attention_dilation": [1] * layers, "attention_window": [w // 2 for w in windows]} | changes
    (path / "config.json").write_text(json.dumps(given))
    for name in ("vocab.json", "merges.txt"):
        (path / name).write_bytes((FIXTURE / name).read_bytes())
    return path


def test_the_fixture_comes_back(tmp_path):
    tensors, config = fixture("led", "text_summarize")
    out = tmp_path / "out"
    assert converter.main([str(source(tmp_path / "in", tensors, config)), str(out)]) == 0
    assert read_safetensors(out / "model.safetensors")[0] == tensors
    written = json.loads((out / "config.json").read_text())
    windows = config["attention_window"]
    wanted = windows if isinstance(windows, list) else [windows] * config["encoder_layers"]
    assert written.pop("attention_window") == wanted
    assert written == {key: value for key, value in config.items()
                       if key not in converter.DROPPED | {"attention_window"}}
    assert (out / "merges.txt").read_bytes() == (FIXTURE / "merges.txt").read_bytes()


@pytest.mark.parametrize("changes, said", [
    ({"attention_dilation": [1, 2]}, "attention_dilation"),
    ({"attention_mode": "n2"}, "n2"),
    ({"attention_window": 8}, "attention_window"),
    ({"autoregressive": True}, "autoregressive"),
    ({"normalize_before": True}, "normalize_before"),
    ({"max_encoder_position_embeddings": 99}, "99 positions"),
    ({"max_decoder_position_embeddings": None}, "max_decoder_position_embeddings"),
])
def test_what_led_does_not_have(tmp_path, capsys, changes, said):
    path = source(tmp_path / "in", *fixture("led", "text_summarize"), **changes)
    assert converter.main([str(path), str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_huggingface_files_are_refused(tmp_path, capsys):
    path = source(tmp_path / "in", *fixture("led", "text_summarize"), unused=0)
    assert converter.main([str(path), str(tmp_path / "out")]) == 1
    assert "unused rows" in capsys.readouterr().err
