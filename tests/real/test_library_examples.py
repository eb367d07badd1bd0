"""Programs of deploy/COMING_FROM.md in transformers and sentence-transformers still print what is recorded of them."""

import json

import pytest

import library_examples

pytestmark = pytest.mark.real

PAIRS = library_examples.pairs()
PRINTED = json.loads(library_examples.PRINTED.read_text())


@pytest.mark.parametrize("model", PAIRS)
def test_the_record_is_true(model):
    pytest.importorskip("sentence_transformers", reason="tests/support/install_real.sh brings it")
    library, _ = PAIRS[model]
    printed = library_examples.run_library(library)
    assert library_examples.same(printed, PRINTED[model], 2e-3), printed
