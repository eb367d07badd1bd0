"""all-MiniLM-L6-v2 against figures that others published."""

import csv
import hashlib
import os

import numpy as np
import pytest

pytestmark = pytest.mark.real

# Of sentence-transformers/all-MiniLM-L6-v2 on HuggingFace's hub.
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# The beginning of the mean, not normalised, in text-embeddings-inference's
# backends/candle/tests/snapshots/test_bert__mini_single.snap (Apache-2.0), rounded.
QUESTION = "What is Deep Learning?"
SNAPSHOT = [-0.59058, -0.25252, 0.14960, 0.05455, -0.11789, -0.16702, -0.23319, -0.07111, -0.19944, -0.29595,
            -0.77311, 0.14408, -0.29081, -0.18529, -0.90926, -0.02020]
SNAPSHOT_TOLERANCE = 4e-3
STS_B = 0.8203  # Spearman's correlation on the test part of STS-B, as the hub's model card has it.


@pytest.fixture
def minilm(checkpoint):
    if checkpoint.name != "all-MiniLM-L6-v2":
        pytest.skip("figures were published of all-MiniLM-L6-v2")
    return checkpoint


def test_these_are_the_published_weights(minilm):
    assert hashlib.sha256((minilm.directory / "model.safetensors").read_bytes()).hexdigest() == WEIGHTS


def test_the_snapshot_of_text_embeddings_inference(minilm):
    vector = minilm.embed([QUESTION], normalize=False)[0]
    error = np.abs(np.array(vector[:len(SNAPSHOT)]) - SNAPSHOT).max()
    print(f"snapshot: off by at most {error:.1e}")
    assert error < SNAPSHOT_TOLERANCE


def test_similarity_of_sentences(minilm):
    """LONGVIEW_STSB names sts-test.csv of the STS benchmark, which no registry carries."""
    if not os.environ.get("LONGVIEW_STSB"):
        pytest.skip("LONGVIEW_STSB names no sts-test.csv of the STS benchmark")
    stats = pytest.importorskip("scipy.stats")
    with open(os.environ["LONGVIEW_STSB"], encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == 1379
    first, second = (np.array(minilm.embed([row[column] for row in rows])) for column in (5, 6))
    figure = stats.spearmanr((first * second).sum(axis=1), [float(row[4]) for row in rows]).statistic
    print(f"STS-B: {figure:.4f}")
    assert abs(figure - STS_B) < 1e-4
