"""A forward is written once: no family has a second one for devices, and kernels know no model."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Rooms that families share, where devices have files of their own.
SHARED = {"device", "encoder", "generation", "ops", "vision"}
SOURCES = {".h", ".cc", ".cu", ".cuh"}


def second_forwards(models):
    """Files for devices in folders of families."""
    return sorted(str(path.relative_to(models)) for path in models.rglob("device_*")
                  if path.suffix in SOURCES and path.relative_to(models).parts[0] not in SHARED
                  and path.parent != models)


def families(models):
    """Names of families: folders that make a model of a checkpoint."""
    return {path.parent.name for path in models.glob("*/weights.h")}


def code(text):
    """A source without its comments, which may say where an operation comes from."""
    return re.sub(r"//[^\n]*", "", text)


def named_models(kernels, names):
    """Sources of kernels whose path or code has a family's name, as a word or in CamelCase."""
    words = "|".join(sorted(names))
    camel = "|".join(sorted(re.sub(r"(^|_)(\w)", lambda m: m[2].upper(), name) for name in names))
    name = re.compile(rf"(?:^|[^a-z])(?:{words})(?:$|[^a-z])|(?:{camel})(?:$|[^a-z])")
    return sorted(str(path.relative_to(kernels)) for path in kernels.rglob("*")
                  if path.suffix in SOURCES and
                  (name.search(str(path.relative_to(kernels))) or
                   name.search(code(path.read_text(encoding="utf-8")))))


def test_no_family_has_a_second_forward():
    assert not second_forwards(ROOT / "models")


def test_kernels_name_no_model():
    names = families(ROOT / "models")
    assert names >= {"cst", "cvt_ls", "led", "longformer", "luna", "transformer_ls", "vil"}
    assert not named_models(ROOT / "kernels", names)


def test_a_second_forward_is_noticed(tmp_path):
    for name in ("new/device_layer.cc", "ops/device_rows.cc", "new/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n")
    assert second_forwards(tmp_path) == ["new/device_layer.cc"]


def test_a_model_in_kernels_is_noticed(tmp_path):
    (tmp_path / "led_rows.cc").write_text("\n")
    (tmp_path / "step.h").write_text("struct LunaStep {};\n")
    (tmp_path / "rows.h").write_text("// As Luna does it.\nint filled_rows;\n")
    assert named_models(tmp_path, {"led", "luna"}) == ["led_rows.cc", "step.h"]
