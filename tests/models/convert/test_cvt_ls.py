"""Checkpoints of CvT*-LS: the fixtures, packed as a trainer saves them, give their own directories
back; a plain CvT is refused by name."""

import pytest

import cvt_ls
from fixture_models import fixture
from test_image_models import check_directory, checkpoint, square_cases


def cvt_arguments(path, out, config):
    def three(key):
        return ",".join(map(str, config[key]))

    options = {"--heads": three("heads"), "--windows": three("windows"),
               "--image-size": config["image_size"]}
    for key in ("cls_qkv", "cls_update", "dp_input", "ws_variant", "act", "attn_scale", "pool"):
        options["--" + key.replace("_", "-")] = config[key]
    if config["qkv_norm"] != "bn":
        options["--qkv-norm"] = config["qkv_norm"]
    flags = ["--any-size"] if config["any_size"] else []
    return [str(path), str(out), *(str(part) for pair in options.items() for part in pair), *flags]


@pytest.mark.parametrize("family, case", square_cases("cvt_ls"))
def test_cvt_ls_fixtures_come_back(family, case, tmp_path):
    tensors, config = fixture(family, case)
    path = checkpoint(tmp_path / "cvt.pth", tensors)
    assert cvt_ls.main(cvt_arguments(path, tmp_path / "out", config)) == 0
    unread = ("id2label", "ln_eps", "dual_ln_eps", "bn_eps", "qkv_stride_kv", "rel_bias")
    check_directory(tmp_path / "out", tensors, config, set(config) - set(unread))


def test_a_plain_cvt_is_refused(tmp_path, capsys):
    tensors, config = fixture("cvt_ls", "cls_joint")
    plain = {name: entry for name, entry in tensors.items() if ".to_k.depthwise" not in name}
    path = checkpoint(tmp_path / "m", plain)
    assert cvt_ls.main(cvt_arguments(path, tmp_path / "out", config)) == 1
    assert "to_k.depthwise" in capsys.readouterr().err
    official = {"stage0.patch_embed.proj.weight": ("F32", [1], b"\0" * 4)}
    path = checkpoint(tmp_path / "m", official)
    assert cvt_ls.main(cvt_arguments(path, tmp_path / "out", config)) == 1
    assert "stage1_conv_embed" in capsys.readouterr().err
