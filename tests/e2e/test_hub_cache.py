"""Models named as at the hub, from its cache on this machine."""

import json
import pathlib
import subprocess

import pytest

from goldens import GOLDEN
from server_process import SERVER, Server

MODEL = GOLDEN / "longformer/text_classification/model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path):
    """A cache as `hf download org/some.model` leaves it."""
    folder = tmp_path / "hub/models--org--some.model"
    snapshot = folder / "snapshots" / COMMIT
    for place in (folder / "blobs", snapshot, folder / "refs"):
        place.mkdir(parents=True)
    (folder / "refs/main").write_text(COMMIT)
    for number, file in enumerate(sorted(MODEL.iterdir())):
        (folder / f"blobs/{number}").write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    return {"HF_HOME": str(tmp_path), "HF_HUB_CACHE": ""}


@pytest.mark.parametrize("name", ["org/some.model", f"org/some.model@{COMMIT}"])
def test_a_model_of_the_hub_is_served(cache, name):
    with Server([f"{name},plain={MODEL}"], env=cache) as server:
        assert {model["id"] for model in json.loads(server.get("/v1/models")[2])["data"]} == \
            {"org/some.model", "plain"}
        answers = [server.post_json("/v1/classify", {"model": model, "text": "a"})
                   for model in ("plain", "some.model", "org/some.model")]
        assert [status for status, _ in answers] == [200] * 3
        assert answers[0][1]["labels"] == answers[1][1]["labels"] == answers[2][1]["labels"]
        status, answer = server.post_json("/v1/classify", {"model": "other/plain", "text": "a"})
        assert status == 404 and "other/plain" in answer["error"]["message"]


@pytest.mark.parametrize("place", ["", "snapshots", f"snapshots/{COMMIT}"])
def test_a_path_into_the_cache_is_the_model_of_that_name(cache, place):
    path = f"{cache['HF_HOME']}/hub/models--org--some.model/{place}"
    with Server([path]) as server:
        assert [model["id"] for model in json.loads(server.get("/v1/models")[2])["data"]] == \
            ["org/some.model"]
        assert server.post_json("/v1/classify", {"model": "org/some.model", "text": "a"})[0] == 200
    assert run("--check", path, env={}).returncode == 0


def test_a_path_to_half_a_download_says_what_it_lacks(cache):
    path = f"{cache['HF_HOME']}/hub/models--org--some.model"
    pathlib.Path(path, "refs/main").write_text("f" * 40)
    for arguments in ([path], ["--check", path]):
        done = run(*arguments, env={})
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1 and "no revision main of it" in last, last
        assert "hf download org/some.model" in last


def run(*arguments, env):
    return subprocess.run([SERVER, *arguments], capture_output=True, text=True, timeout=60, env=env)


def test_check_and_validate_know_it(cache):
    done = run("--check", "org/some.model", env=cache)
    assert done.returncode == 0 and "text-classification" in done.stdout
    done = run("--validate_config", "--models=org/some.model", env=cache)
    assert done.returncode == 0 and "1 models" in done.stdout


def test_what_is_not_there_comes_with_the_command(cache):
    for arguments in (["--check", "org/other"], ["--models=org/other"],
                      ["--validate_config", "--models", "x=org/other"]):
        done = run(*arguments, env=cache)
        assert done.returncode == 1
        assert done.stderr.strip().endswith("hf download org/other"), done.stderr
        assert cache["HF_HOME"] in done.stderr
    done = run("--check", "org/some.model@v2", env=cache)
    assert "no revision v2 of it, but main" in done.stderr
    assert done.stderr.strip().endswith("hf download org/some.model --revision v2")
