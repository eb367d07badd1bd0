"""A forward is written once: a family whose forward is a pass has no twin of it for devices."""

import pathlib
import re

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"


def families_with_a_pass(models):
    return {header.parent for header in models.glob("*/*pass.h")
            if re.search(r":\s*public (EncoderPass|StagedPass|TokenForward)\b",
                         header.read_text(encoding="utf-8"))
            and header.parent.name not in ("encoder", "generation", "vision")}


def twins(family):
    return sorted(path.name for path in family.iterdir() if path.name.startswith("device_"))


def test_no_family_with_a_pass_has_a_second_forward():
    families = families_with_a_pass(MODELS)
    assert {family.name for family in families} >= {"cst", "cvt_ls", "led", "longformer", "luna",
                                                    "stack", "transformer_ls_text", "vil"}
    found = {family.name: twins(family) for family in families if twins(family)}
    assert not found, found


def test_a_second_forward_is_noticed(tmp_path):
    family = tmp_path / "models/new"
    family.mkdir(parents=True)
    (family / "pass.h").write_text("class NewPass final : public EncoderPass {};\n")
    (family / "device_layer.cc").write_text("\n")
    assert families_with_a_pass(tmp_path / "models") == {family}
    assert twins(family) == ["device_layer.cc"]
