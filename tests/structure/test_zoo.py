"""The bundled models as directories: small, and described by a card."""

import pathlib

import pytest

ZOO = pathlib.Path(__file__).resolve().parents[2] / "models/zoo"
MODELS = sorted(path.parent for path in ZOO.glob("*/config.json"))
LARGEST_BYTES = 25 * 10**6


def test_there_are_models():
    assert MODELS


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_small_and_described(model):
    assert sum(path.stat().st_size for path in model.iterdir()) <= LARGEST_BYTES
    card = (model / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {model.name}\n") and "models/train/" in card
