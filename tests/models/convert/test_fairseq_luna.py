"""Fairseq checkpoints made from the fixtures' weights become the fixtures' directories again;
anything else is refused by name."""

import json

import pytest

import fairseq_luna as converter
import torch_pickles as pickles
from fixture_models import GOLDEN, cases, fixture, read_safetensors

FAMILY = GOLDEN / "luna"
# Language models have no published code: nothing to convert.
CASES = [case for case in cases("luna") if not case.startswith("causal_")]


def value(python):
    if isinstance(python, bool):
        return b"\x88" if python else b"\x89"
    if isinstance(python, int):
        return pickles.integer(python)
    return b"N" if python is None else pickles.text(python)


def namespace(entries):
    state = pickles.dictionary({name: value(entry) for name, entry in entries.items()})
    return pickles.name("argparse", "Namespace") + b")\x81" + state + b"b"


def checkpoint(path, tensors, options, container="zip"):
    """What fairseq's trainer writes: every tensor in a storage of its own."""
    state, storages, counts = pickles.state_dict(tensors, container == "legacy")
    body = pickles.dictionary({
        "args": namespace(options),
        "model": pickles.dictionary(state),
        "optimizer_history": b"]",
        "extra_state": pickles.dictionary({"epoch": pickles.integer(3)}),
    })
    return pickles.save(path, body, storages, counts, container)


def training_options(config, **changes):
    """`args` as the training of this fixture would have left them."""
    options = {
        "encoder_embed_dim": config["hidden_size"],
        "encoder_ffn_embed_dim": config["ffn_size"],
        "encoder_layers": config["num_layers"],
        "encoder_attention_heads": config["num_heads"],
        "activation_fn": config["activation"],
        "max_positions": config["max_positions"],
        "dropout": "0.1",
    }
    if config["head"].startswith("lra_"):
        pooling = config["pooling"]
        options |= {
            "encoder_projection_length": config["proj_len"],
            "encoder_normalize_before": config["embedding_layer_norm"],
            "tie_layer_weights": config["tie_layer_weights"],
            "sen_rep_type": "mp" if pooling == "mean" else "cls",
            "use_p": pooling == "proj_mean",
            "classifier_activation_fn": config["classifier_activation"],
        }
        return options | changes
    options |= {
        "projection_length": config["proj_len"],
        "fix_projection_length": not config["dynamic_projection"],
        "untie_luna_kv": not config["tie_kv"],
    }
    if config["head"] != "translation":
        options["untie_weights_luna"] = not config["tie_word_embeddings"]
        options["pooler_activation_fn"] = config.get("pooler_activation", "tanh")
        return options | changes
    for side, prefix in (("encoder", ""), ("decoder", "decoder_")):
        heads = "num_proj_heads" if side == "encoder" else "decoder_proj_heads"
        options |= {
            f"{side}_projected_attention_heads": config[heads],
            f"{side}_learned_pos": config[prefix + "position_type"] == "learned",
            f"{side}_normalize_before": config[prefix + "norm_position"] == "pre",
        }
    options |= {
        "decoder_layers": config["decoder_layers"],
        "decoder_ffn_embed_dim": config["decoder_ffn_size"],
        "decoder_attention_heads": config["decoder_heads"],
        "decoder_output_dim": config["decoder_output_dim"],
        "layernorm_embedding": config["embedding_layer_norm"],
        "no_scale_embedding": config["embed_scale"] == 1,
        "share_all_embeddings": config["share_all_embeddings"],
        "share_decoder_input_output_embed": config["share_decoder_input_output_embed"],
        "max_source_positions": config["max_positions"],
        "max_target_positions": config["decoder_max_positions"],
    }
    return options | changes


def arguments(case, path, out, config):
    model = FAMILY / case / "model"
    two = (model / "dict.src.txt").exists()
    result = [str(path), str(model / ("dict.src.txt" if two else "dict.txt")), str(out)]
    if two:
        result += ["--target-dictionary", str(model / "dict.tgt.txt")]
    if "classification_head" in config:
        result += ["--head", config["classification_head"]]
    return result


def convert(tmp_path, case, tensors=None, container="zip", more=(), **changes):
    found, config = fixture("luna", case)
    path = checkpoint(tmp_path / "checkpoint.pt", tensors or found,
                      training_options(config, **changes), container)
    return converter.main([*arguments(case, path, tmp_path / "out", config), *more])


@pytest.mark.parametrize("container", ["zip", "legacy"])
@pytest.mark.parametrize("case", CASES)
def test_fixtures_come_back(case, container, tmp_path):
    assert convert(tmp_path, case, container=container) == 0
    tensors, expected = fixture("luna", case)
    assert read_safetensors(tmp_path / "out/model.safetensors")[0] == tensors
    config = json.loads((tmp_path / "out/config.json").read_text())
    del config["torch_dtype"]
    # The trainer has one number of heads for pack and unpack in encoders.
    expected.setdefault("num_proj_heads", expected["num_heads"])
    for name, value in config.items():
        assert expected.get(name, value) == value, name
    for name in ("architectures", "head", "tie_kv", "proj_len", "activation", "norm_position"):
        assert config[name] == expected[name], name
    for file in (tmp_path / "out").glob("dict*.txt"):
        assert file.read_bytes() == (FAMILY / case / "model" / file.name).read_bytes()
    assert list((tmp_path / "out").glob("dict*.txt"))


def test_old_spellings_are_renamed(tmp_path):
    tensors, _ = fixture("luna", "mlm_tied")
    old = {}
    for name, tensor in tensors.items():
        name = name.replace(".self_attn_layer_norm.", ".layer_norms.0.")
        name = name.replace(".final_layer_norm.", ".layer_norms.1.")
        old["decoder." + name.removeprefix("encoder.")] = tensor
    assert convert(tmp_path, "mlm_tied", old) == 0
    assert read_safetensors(tmp_path / "out/model.safetensors")[0] == tensors


def test_labels_get_the_names_of_their_dictionary(tmp_path, capsys):
    labels = tmp_path / "labels.txt"
    labels.write_text("good 60\nbad 40\nmadeupword0000 0\n")
    assert convert(tmp_path, "lra_text_cls", more=["--labels", str(labels)]) == 0
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["id2label"] == {"0": "good", "1": "bad"}
    labels.write_text("good 60\n")
    assert convert(tmp_path, "lra_text_cls", more=["--labels", str(labels), "--force"]) == 1
    assert "1 labels, the head has 2" in capsys.readouterr().err


def test_norms_around_zero_are_read_as_differences_to_one(tmp_path, capsys):
    tensors, _ = fixture("luna", "lra_text_cls")
    shifted = {
        name: (dtype, shape, bytes(len(data)) if name.endswith("norm.weight") else data)
        for name, (dtype, shape, data) in tensors.items()
    }
    assert convert(tmp_path, "lra_text_cls", shifted) == 0
    assert "1 + weight" in capsys.readouterr().err
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["layer_norm_gain"] == "one_plus"


def test_an_existing_file_is_kept_unless_forced(tmp_path, capsys):
    assert convert(tmp_path, "lra_proj1") == 0
    assert convert(tmp_path, "lra_proj1") == 1
    assert "--force" in capsys.readouterr().err
    assert convert(tmp_path, "lra_proj1", more=["--force"]) == 0


def without(part):
    return lambda tensors: {n: t for n, t in tensors.items() if part not in n}


def added(name):
    return lambda tensors: {**tensors, name: tensors["classifier.0.bias"]}


@pytest.mark.parametrize("change, message", [
    (without("layers.1.fc2.bias"), "layers.1.fc2.bias"),
    (without("classifier.0."), "2021"),
    (without("encoder.encoder."), "none of a Luna model"),
    (added("encoder.encoder.quant_noise.weight"), "quant_noise"),
    (added("encoder.encoder.layers.0.fc2.bias"), "layers.0.fc2.bias"),
    (added("encoder.encoder.layers.0.self_attn.pc_proj.weight"), "self_attn"),
])
def test_tensors_are_refused_by_name(change, message, tmp_path, capsys):
    tensors, _ = fixture("luna", "lra_text_cls")
    assert convert(tmp_path, "lra_text_cls", change(tensors)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out/model.safetensors").exists()


@pytest.mark.parametrize("changes", [
    {"encoder_layers": None}, {"encoder_embed_dim": 33}, {"activation_fn": "swish"},
    {"encoder_projection_length": 17}, {"tie_layer_weights": 1}, {"quant_noise_pq": 1},
])
def test_options_are_never_guessed(changes, tmp_path, capsys):
    assert convert(tmp_path, "lra_text_cls", **changes) == 1
    assert f"args.{next(iter(changes))}" in capsys.readouterr().err


def test_a_dictionary_of_another_size_is_refused(tmp_path, capsys):
    tensors, config = fixture("luna", "lra_text_cls")
    short = tmp_path / "short.txt"
    short.write_text("a 5\nb 4\n")
    path = checkpoint(tmp_path / "c.pt", tensors, training_options(config))
    assert converter.main([str(path), str(short), str(tmp_path / "out")]) == 1
    assert "make 7 ids; the embedding has 25" in capsys.readouterr().err


def test_heads_are_chosen_by_name(tmp_path, capsys):
    tensors, config = fixture("luna", "seqcls_cls")
    path = checkpoint(tmp_path / "c.pt", tensors, training_options(config))
    dictionary = str(FAMILY / "seqcls_cls/model/dict.txt")
    assert converter.main([str(path), dictionary, str(tmp_path / "out"), "--head", "none"]) == 1
    assert config["classification_head"] in capsys.readouterr().err
    assert converter.main([str(path), dictionary, str(tmp_path / "out")]) == 0
    made = json.loads((tmp_path / "out/config.json").read_text())
    assert made["architectures"] == ["LunaForMaskedLM"]
