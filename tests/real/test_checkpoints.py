"""Trained checkpoints against sentence-transformers: vectors, ids, what is cut."""

import subprocess

import numpy as np
import pytest

from server_process import SERVER
from texts import LONG, texts

pytestmark = pytest.mark.real

UNIT = 1e-5  # Of vectors of length one.


def test_the_directory_is_served_as_it_lies(checkpoint):
    done = subprocess.run([SERVER, "--check", checkpoint.directory], capture_output=True, text=True)
    assert done.returncode == 0 and "served:       yes" in done.stdout, done.stdout + done.stderr


def test_ids_of_texts_in_many_scripts(checkpoint):
    different = {text: (got, wanted) for text in texts()
                 if (got := checkpoint.tokenize(text)) != (wanted := checkpoint.library.tokenizer(text)["input_ids"])}
    print(f"{checkpoint.name}: ids of {len(texts())} texts, {len(different)} different")
    assert not different


def test_vectors_of_texts_in_many_scripts(checkpoint):
    got = np.array(checkpoint.embed(texts(), truncate=True))
    wanted = checkpoint.library.encode(texts(), batch_size=32)
    assert np.allclose(np.linalg.norm(wanted, axis=1), 1, atol=1e-5)
    errors = np.abs(got - wanted).max(axis=1)
    print(f"{checkpoint.name}: vectors of {len(errors)} texts, off by at most {errors.max():.1e}")
    assert errors.max() < UNIT, texts()[int(errors.argmax())]


def test_a_long_text_is_cut_where_the_library_cuts(checkpoint):
    limit = checkpoint.library.max_seq_length
    assert len(checkpoint.tokenize(LONG)) > 2 * limit
    status, answer = checkpoint.server.post_json(
        "/v1/embeddings", {"model": checkpoint.name, "input": LONG, "truncate": True})
    assert status == 200 and answer["usage"]["prompt_tokens"] == limit, answer
    error = np.abs(np.array(answer["data"][0]["embedding"]) - checkpoint.library.encode(LONG)).max()
    assert error < UNIT
    status, answer = checkpoint.server.post_json("/v1/embeddings", {"model": checkpoint.name, "input": LONG})
    assert status == 400 and f"limit of {limit}" in answer["error"]["message"]
