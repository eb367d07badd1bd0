"""Directories as people have them: served with the right vectors as they lie, or refused with one
sentence that says what to do."""

import subprocess

import numpy as np
import pytest

from directory_shapes import BASE, REFUSED, SERVED, make
from server_process import SERVER, Server

TEXT, IDS = "LONG documents, Reading", [2, 5, 7, 8, 14, 9, 10, 3]


def named(shape):
    return shape.__name__


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    models = [f"org/{named(shape)}={make(shape, folder / named(shape))}" for shape in SERVED]
    with Server([",".join(models)], "--dtype=fp32") as running:
        yield running


@pytest.mark.parametrize("shape", SERVED, ids=named)
def test_served_as_it_lies(server, shape):
    pooling, normalised = SERVED[shape]
    rows = BASE.hidden(IDS)
    wanted = rows[0] if pooling == "cls" else rows.mean(0)
    if normalised:
        wanted = wanted / np.linalg.norm(wanted)
    status, answer = server.post_json("/v1/embeddings", {"model": f"org/{named(shape)}",
                                                         "input": TEXT})
    assert status == 200, answer
    got = np.array(answer["data"][0]["embedding"])
    if not normalised:  # The default of the endpoint is for directories that say nothing.
        got = got / np.linalg.norm(got) * np.linalg.norm(wanted)
    assert np.abs(got - wanted).max() < 2e-5


@pytest.mark.parametrize("shape", REFUSED, ids=named)
def test_refused_in_one_sentence(tmp_path, shape):
    folder = make(shape, tmp_path / "model")
    done = subprocess.run([SERVER, "--validate_config", f"--models=m={folder}"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("longview-server: ")]
    assert len(lines) == 1 and len(lines[0]) < 500
    assert REFUSED[shape] in lines[0]


@pytest.mark.parametrize("path", ["/v1/models/{}", "/v2/models/{}", "/v2/models/{}/ready",
                                  "/v2/models/{}/versions/1", "/v2/models/{}/config"])
def test_names_with_an_organisation_in_paths(server, path):
    for name in ("org/plain", "org%2Fplain", "plain"):
        assert server.get(path.format(name))[0] == 200, name
    assert server.get(path.format("other/plain"))[0] == 404


@pytest.mark.parametrize("name, limit", [("bge", 32), ("in_its_own_folder", 32), ("no_limit", 40),
                                         ("limit_above_the_tokenizers", 40)])
def test_the_limit_of_texts(server, name, limit):
    """max_seq_length whatever the tokenizer says, within the 40 positions of the model."""
    def ask(words):
        return server.post_json("/v1/embeddings", {"model": f"org/{name}", "input": "a " * words})
    assert ask(limit - 2)[0] == 200
    status, answer = ask(limit - 1)
    assert status == 400 and f"limit of {limit}" in answer["error"]["message"]


def test_notes_say_what_was_taken_for_what(server):
    lines = server.log().splitlines()
    for name, note in (("masked_lm_without_head", "BertForMaskedLM, whose head the weights lack"),
                       ("unserved_class", "BertForNextSentencePrediction, which is not served")):
        assert any(f"org/{name}" in line and note in line and "--task" in line for line in lines)
