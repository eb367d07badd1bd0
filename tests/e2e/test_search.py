"""`longview search` with models that pool each in its own way, against the vectors of the HTTP API."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from server_process import CLIENT, GOLDEN, Server

FAMILY = GOLDEN / "sentence_transformers"
LATE, ALONE = "modernbert_include_prompt_false", "roberta_list_mean_cls"
SHORT = "short"  # LATE, but it reads less than a chunk.
QUESTION = "where is the window"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The fixture that pools by mean reads longer texts here: several chunks at once."""
    models = tmp_path_factory.mktemp("models")
    for name, limit in ((LATE, 1500), (SHORT, 64)):
        shutil.copytree(FAMILY / LATE / "model", models / name)
        config = json.loads((models / name / "tokenizer_config.json").read_text())
        (models / name / "tokenizer_config.json").write_text(
            json.dumps({**config, "model_max_length": limit}))
    with Server([str(models), f"{ALONE}={FAMILY / ALONE / 'model'}"], "--dtype=fp32") as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of a few chunks each, and what a search leaves out."""
    folder = tmp_path_factory.mktemp("folder")
    for name in ("one", "two"):
        blocks = [f"def {name}_{i}(window):\n" + "    größe = window\n" * (16 + i) for i in range(3)]
        (folder / f"{name}.py").write_text("\n\n".join(blocks).rstrip("\n"), encoding="utf-8")
    (folder / "node_modules").mkdir()
    (folder / "node_modules/left.js").write_text("window\n")
    (folder / "left.bin").write_bytes(b"window\0\1")
    return folder


def search(server, *arguments):
    done = subprocess.run([CLIENT, "search", f"--server={server.grpc}", "--json", *map(str, arguments)],
                          capture_output=True, text=True, timeout=60)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def prompts(model):
    path = FAMILY / (LATE if model == SHORT else model) / "model/config_sentence_transformers.json"
    return json.loads(path.read_text())["prompts"] if path.exists() else {}


def vector(server, model, text, kind, **settings):
    if kind in prompts(model):
        settings["prompt_name"] = kind
    status, answer = server.post_json("/v1/embeddings", {"model": model, "input": text, **settings})
    assert status == 200, answer
    row = np.array(answer["data"][0]["embedding"])
    return row / np.linalg.norm(row)


def lines_range(text, first, last):
    """The code points of lines, counted from one, without the last line's end."""
    lines = text.splitlines(keepends=True)
    return [sum(map(len, lines[:first - 1])), len("".join(lines[:last]).rstrip("\n"))]


@pytest.mark.parametrize("model", [LATE, ALONE])
def test_scores_are_the_cosines_of_the_api(server, folder, model):
    done, places = search(server, f"--model={model}", "--top=100", folder, QUESTION)
    assert done.returncode == 0, done.stderr
    assert len(places) >= 4 and {place["input"] for place in places} == \
        {str(folder / "one.py"), str(folder / "two.py")}
    assert [place["score"] for place in places] == sorted((place["score"] for place in places), reverse=True)
    asked = vector(server, model, QUESTION, "query")
    for place in places:
        text = open(place["input"], encoding="utf-8").read()
        begin, end = lines_range(text, place["start_line"], place["end_line"])
        assert text[begin:end] == place["text"]
        if model == ALONE:
            row = vector(server, model, text[begin:end], "document", truncate=True)
        else:
            row = vector(server, model, text, "document", chunks=[[begin, end]])
        assert place["score"] == pytest.approx(float(asked @ row), abs=2e-5)


def test_a_file_longer_than_the_model_is_searched_to_its_end(server, tmp_path):
    lines = [f"line{i} of a long file says window" + "\n" * (1 + (i % 9 == 8)) for i in range(900)]
    (tmp_path / "long.txt").write_text("".join(lines))
    status, _ = server.post_json("/v1/embeddings", {"model": LATE, "input": "".join(lines)})
    assert status == 400, "the fixture's model reads so much at once"
    done, places = search(server, f"--model={LATE}", "--top=1000", tmp_path, QUESTION)
    assert done.returncode == 0, done.stderr
    found = "\n".join(place["text"] for place in places)
    assert all(f"line{i} " in found for i in range(900))


def test_a_chunk_longer_than_the_model_is_cut(server, folder):
    done, places = search(server, f"--model={SHORT}", "--top=100", folder, QUESTION)
    assert done.returncode == 0, done.stderr
    assert len(places) >= 4
    status, _ = server.post_json("/v1/embeddings", {"model": SHORT, "input": places[0]["text"]})
    assert status == 400, "the fixture's model reads less"
    asked = vector(server, SHORT, QUESTION, "query")
    for place in places:
        row = vector(server, SHORT, place["text"], "document", truncate=True)
        assert place["score"] == pytest.approx(float(asked @ row), abs=2e-5)


def test_errors_name_what_to_do(server, folder):
    for arguments, part in (([folder], "a question"), ([folder, QUESTION], "--model is needed"),
                            (["--model=none", folder, QUESTION], "none"),
                            ([f"--model={LATE}", "--prompt_name=web", folder, QUESTION], "prompt_name")):
        done, _ = search(server, *arguments)
        assert done.returncode in (1, 2) and part in done.stderr, (arguments, done.stderr)
