"""`longview search` with models that pool each in its own way, against the vectors of the HTTP API."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from server_process import CLIENT, GOLDEN, ROOT, Server

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


def search(server, *arguments, cache=None):
    kept = [] if cache else ["--no_cache"]
    done = subprocess.run([CLIENT, "search", f"--server={server.grpc}", "--json", *kept,
                           *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "XDG_CACHE_HOME": str(cache or "/nonexistent")})
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
    done, places = search(server, "--by=vectors", f"--model={model}", "--top=100", folder, QUESTION)
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
    done, places = search(server, "--by=vectors", f"--model={LATE}", "--top=1000", tmp_path, QUESTION)
    assert done.returncode == 0, done.stderr
    found = "\n".join(place["text"] for place in places)
    assert all(f"line{i} " in found for i in range(900))


def test_a_chunk_longer_than_the_model_is_cut(server, folder):
    done, places = search(server, "--by=vectors", f"--model={SHORT}", "--top=100", folder, QUESTION)
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


# What a person might ask of the library's own sources, and what begins the right place's code.
ASKED = {"how is the wait between two attempts computed": ("retry_policy.cc", "NextDelay"),
         "open a channel with certificates": ("channel.cc", "OpenChannel"),
         "restricted interpreter of pickle opcodes": ("pickle.h", "an interpreter that knows"),
         "turn a picture by its exif orientation": ("orientation.cc", "Oriented")}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of some sources, so that their path says nothing."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("client/cpp", "models/checkpoint", "models/image"):
        for path in (ROOT / name).glob("*.[ch]*"):
            shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize("question", ASKED)
def test_the_bundled_models_answer_without_a_name(zoo_server, sources, question):
    done, places = search(zoo_server, "--top=3", sources, question)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    name, part = ASKED[question]
    found = [place["input"].endswith(name) and part in place["text"] for place in places]
    assert any(found), [(place["input"], place["start_line"]) for place in places]
    assert all({"bm25", "cosine"} <= place.keys() for place in places)


def read_by_search(server):
    """Tokens that the search model has read."""
    metrics = server.get("/metrics")[2].decode()
    return sum(float(value) for value in re.findall(
        r'^longview_tokens_total\{[^}]*model="code-search"[^}]*\} (\S+)$', metrics, re.MULTILINE))


def test_the_second_question_embeds_no_file_again(zoo_server, sources, tmp_path):
    questions = list(ASKED)
    before = read_by_search(zoo_server)
    first, places = search(zoo_server, sources, questions[0], cache=tmp_path / "cache")
    assert first.returncode == 0, first.stderr
    whole = read_by_search(zoo_server) - before
    assert whole > 10000
    search(zoo_server, sources, questions[1], cache=tmp_path / "cache")
    assert read_by_search(zoo_server) - before - whole < 200, "the question, and what finds out how to ask"
    again, kept = search(zoo_server, sources, questions[0], cache=tmp_path / "cache")
    assert kept == places
    apart, fresh = search(zoo_server, sources, questions[0])
    assert fresh == places, "with and without kept vectors"


def test_two_searches_at_once_share_a_cache(zoo_server, sources, tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    both = [subprocess.Popen([CLIENT, "search", f"--server={zoo_server.grpc}", "--json", sources, "retry"],
                             stdout=subprocess.PIPE, env=environment) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in both]
    assert answers[0] == answers[1] and answers[0]
    assert search(zoo_server, sources, "retry", cache=tmp_path)[0].stdout.encode() == answers[0]


def test_words_alone_need_no_server(sources):
    done = subprocess.run([CLIENT, "search", "--server=127.0.0.1:1", "--by=words", "--json", "--top=1",
                           sources, "retry delays"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "retry_policy" in json.loads(done.stdout)["input"], done.stderr
    done = subprocess.run([CLIENT, "search", "--server=127.0.0.1:1", sources, "retry delays"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "--by=words needs no server" in done.stderr
