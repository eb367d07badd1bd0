"""Reads the fixtures of tests/golden (or LONGVIEW_GOLDEN)."""

import json
import re
import shutil

import numpy as np
from safetensors import safe_open

from server_process import GOLDEN


# Families of encoders and the fixtures of theirs that are of another kind.
ENCODERS = {
    "longformer": (),
    "transformer_ls_text": (),
    "luna": ("causal_", "mt_"),
    "cst": ("ar_",),
    "modernbert": (),
    "xlm_roberta": (),
}


def encoder_cases():
    """(family, case directory) of every encoder fixture with a model."""
    return [(family, case) for family in ENCODERS for case in cases(family)
            if (case / "model/config.json").exists()
            and not case.name.startswith(ENCODERS.get(family, ()))]


def served_name(family, case):
    """The name under which golden_server has a case's model."""
    return case if family == "longformer" else f"{family}.{case}"


def served_models(family):
    """name -> model directory, for every directory a server can be pointed at."""
    models = {}
    for case in sorted((GOLDEN / family).iterdir()):
        if case.name.startswith(ENCODERS.get(family, ())):
            continue
        for directory in sorted(case.glob("model*")):
            weights = list(directory.glob("model*.safetensors"))
            if (directory / "config.json").exists() and weights:
                suffix = directory.name.removeprefix("model").replace("_", "-")
                models[served_name(family, f"{case.name}{suffix}")] = directory
    return models


def cases(family):
    return [path for path in sorted((GOLDEN / family).iterdir()) if (path / "case.json").exists()]


def case_facts(case):
    return json.loads((case / "case.json").read_text())


def tensors(path):
    """All tensors of a safetensors file; bf16 does not occur in fixtures' inputs."""
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def items(inputs, name):
    """N -> tensor for inputs called name.N."""
    pattern = re.compile(rf"{re.escape(name)}\.(\d+)")
    return {int(match[1]): tensor for key, tensor in inputs.items()
            if (match := pattern.fullmatch(key))}


def expected(outputs, key):
    """The double-precision value where the fixture has one."""
    return outputs.get(f"{key}.f64", outputs.get(key))


def expected_item(outputs, key, index):
    """What item `index` should give: an entry of its own, or its row of one for all items."""
    own = expected(outputs, f"{key}.{index}")
    if own is not None:
        return own
    together = expected(outputs, key)
    return None if together is None else together[index]


def assert_close(actual, wanted, tolerance, what):
    actual, wanted = np.asarray(actual, np.float64), np.asarray(wanted, np.float64)
    assert actual.shape == wanted.shape, f"{what}: shape {actual.shape}, expected {wanted.shape}"
    assert np.isfinite(actual).all(), f"{what}: not finite"
    error = np.abs(actual - wanted).max() if actual.size else 0.0
    assert error <= tolerance, f"{what}: off by {error:.2e}, tolerance {tolerance:.0e}"


def half_of_a_pickle(directory, folder):
    """Copies a directory with pytorch_model.bin into `folder`, that file cut in the middle."""
    broken = folder / "broken"
    shutil.copytree(directory, broken)
    weights = broken / "pytorch_model.bin"
    whole = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(whole[:len(whole) // 2])
    return broken
