"""What was converted from 4 bits is a multilingual model: translations lie together, other texts apart."""

import numpy as np
import pytest

from texts import ARTICLE

pytestmark = pytest.mark.real

OTHERS = ["The train to the coast leaves at nine in the morning.", "Der Zug fährt um neun Uhr ab.",
          "Add two eggs and stir the dough until it is smooth.", "int main() { return 0; }"]


def test_translations_are_nearer_than_other_texts(checkpoint):
    if not checkpoint.name.startswith("multilingual"):
        pytest.skip("a model of one language")
    articles, others = (np.array(checkpoint.embed([f"query: {text}" for text in group]))
                        for group in (ARTICLE.values(), OTHERS))
    english = articles[list(ARTICLE).index("en")]
    assert (articles @ english > (articles @ others.T).max(axis=1)).all()
