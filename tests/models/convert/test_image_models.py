"""Checkpoints of image classifiers become model directories: the fixtures, packed as the original
trainers save them, give their own directories back; anything else is refused by name."""

import json

import pytest

import torch_pickles as pickles
import vil
from fixture_models import cases, fixture, read_safetensors

INDEX = "relative_position_index"
DERIVED = (INDEX, "calls_since_last_redraw")


def square_cases(*families):
    """Fixtures that the original constructors, which take one side, could have made."""
    return [(family, case) for family in families for case in cases(family)
            if isinstance(fixture(family, case)[1]["image_size"], int)]


def checkpoint(path, tensors, prefix="module."):
    """What the trainers save: the state dict among other things, objects of their own too."""
    entries, storages, _ = pickles.state_dict(tensors)
    scheduler = (pickles.name("trainer.schedule", "WarmupCosine") + b")R"
                 + pickles.dictionary({"last_epoch": pickles.integer(300)}) + b"b")
    body = pickles.dictionary({
        "net": pickles.dictionary({prefix + name: entry for name, entry in entries.items()}),
        "arch": pickles.text("msvit"),
        "epoch": pickles.integer(300),
        "scheduler": scheduler,
    })
    path.write_bytes(pickles.zip_file(body, storages))
    return path


def unprefixed(tensors):
    return {name.removeprefix("module."): entry for name, entry in tensors.items()}


def vil_arguments(path, out, config):
    flags = [("avg_pool", "--avg-pool"), ("only_global", "--only-global")]
    off = [("norm_embed", "--no-norm-embed"), ("share_w", "--separate-globals"),
           ("share_kv", "--separate-kv")]
    return [str(path), str(out), "--arch", config["arch"], "--image-size",
            str(config["image_size"]), "--attn-type", config.get("attn_type", "longformerhand"),
            "--sw-exact", str(config.get("sw_exact", 0)), f"--mode={config.get('mode', 0)}",
            *(flag for key, flag in flags if config.get(key, False)),
            *(flag for key, flag in off if not config.get(key, True))]


def check_directory(out, tensors, config, keys):
    found, _ = read_safetensors(out / "model.safetensors")
    assert found == {name: entry for name, entry in tensors.items() if not name.endswith(DERIVED)}
    written = json.loads((out / "config.json").read_text())
    for key in keys:
        if key in config:
            assert written[key] == config[key], key
    pipeline = json.loads((out / "preprocessor_config.json").read_text())
    assert pipeline["crop_size"]["height"] == config["image_size"]


@pytest.mark.parametrize("family, case", square_cases("vil", "vil_ls"))
def test_vil_fixtures_come_back(family, case, tmp_path):
    tensors, config = fixture(family, case)
    tensors = unprefixed(tensors)
    path = checkpoint(tmp_path / "model_best.pth", tensors)
    assert vil.main(vil_arguments(path, tmp_path / "out", config)) == 0
    check_directory(tmp_path / "out", tensors, config, (
        "model_type", "architectures", "arch", "image_size", "norm_embed", "avg_pool", "attn_type",
        "share_w", "share_kv", "only_global", "sw_exact", "mode", "ln_eps", "num_labels"))


def test_pipelines_and_labels(tmp_path):
    tensors, config = fixture("vil_ls", "published_shape_64")
    path = checkpoint(tmp_path / "m", tensors, prefix="")
    names = tmp_path / "names"
    names.write_text("\n".join(f"class {i}" for i in range(10)))
    options = [*vil_arguments(path, tmp_path / "out", config), "--labels", str(names),
               "--crop-fraction", "0.9"]
    assert vil.main(options) == 0
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert written["id2label"]["3"] == "class 3"
    pipeline = json.loads((tmp_path / "out/preprocessor_config.json").read_text())
    assert pipeline["size"] == {"shortest_edge": 71}


def swap_chunk_side(config):
    config["arch"] = config["arch"].replace("f4", "f5")


BLOCK = "layer1.1.attn."


@pytest.mark.parametrize("change, message", [
    (lambda t, c: t.pop(BLOCK + "qkv.bias"), BLOCK + "qkv.bias"),
    (lambda t, c: t.update({BLOCK + "gate": ("F32", [1], b"\0" * 4)}), BLOCK + "gate"),
    (lambda t, c: t.update({"norm.bias": ("F32", [2], b"\0" * 8)}), "norm.bias"),
    (lambda t, c: t.pop("head.weight"), "head.weight"),
    (lambda t, c: swap_chunk_side(c), "local_relative_position_bias_table"),
    (lambda t, c: t.update({BLOCK + INDEX: (*t[BLOCK + INDEX][:2],
                                            bytes(len(t[BLOCK + INDEX][2])))}), BLOCK + INDEX),
    (lambda t, c: c.update(arch="l1,h2_l3"), "--arch"),
])
def test_what_does_not_fit_is_refused_by_name(change, message, tmp_path, capsys):
    tensors, config = fixture("vil_ls", "published_shape_64")
    change(tensors, config)
    path = checkpoint(tmp_path / "m", tensors)
    assert vil.main(vil_arguments(path, tmp_path / "out", config)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_scheduler_inside_the_state_dict_is_not_a_tensor(tmp_path, capsys):
    entries, storages, _ = pickles.state_dict({"w": ("F32", [1], b"\0" * 4)})
    entries["scheduler"] = pickles.name("trainer.schedule", "WarmupCosine") + b")R"
    path = tmp_path / "m"
    path.write_bytes(pickles.zip_file(
        pickles.dictionary({"net": pickles.dictionary(entries)}), storages))
    _, config = fixture("vil_ls", "published_shape_64")
    assert vil.main(vil_arguments(path, tmp_path / "out", config)) == 1
    assert "'scheduler' is Foreign" in capsys.readouterr().err
