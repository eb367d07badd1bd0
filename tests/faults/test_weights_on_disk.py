"""Weights that change on disk while they are served: truncated, written over, replaced, deleted.

The process holds its own copy of everything it reads after a load, so that none of it matters; a
load of the damaged files fails with a reason, and what served goes on serving."""

import os
import pathlib
import re
import shutil
import threading

import pytest

from goldens import served_models
from neighbours import CLASSIFIER, LM, Neighbours, models, record
from server_process import Server, wait_until

def truncate(path):
    os.truncate(path, 16)


def write_over(path):
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 2)
        file.write(bytes(size - size // 2))


def replace(path):
    other = path.with_suffix(".new")
    other.write_bytes(b"\0" * 64)
    os.replace(other, path)


@pytest.mark.parametrize("damage", [truncate, write_over, replace, pathlib.Path.unlink])
def test_served_models_do_not_care(damage, tmp_path):
    with Server(models(tmp_path), "--allow_model_control=true") as server:
        recorded = record(server)
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(4)
            for name in ("classifier", "code-lm"):
                damage(tmp_path / name / "model.safetensors")
            neighbours.wait_for(8)
            if damage is not write_over:  # Half a file of zeros is a file of weights.
                for name in ("classifier", "code-lm"):
                    status, answer = server.post_json(
                        f"/v2/repository/models/{name}/load", {}, timeout=60)
                    assert status >= 400 and "model.safetensors" in str(answer), answer
            neighbours.wait_for(8)
        assert record(server) == recorded


def test_repaired_files_load_again(tmp_path):
    with Server(models(tmp_path), "--allow_model_control=true") as server:
        recorded = record(server)
        truncate(tmp_path / "classifier/model.safetensors")
        load = "/v2/repository/models/classifier/load"
        assert server.post(load, {})[0] >= 400
        shutil.copy(CLASSIFIER / "model.safetensors", tmp_path / "classifier")
        assert server.post(load, {})[0] == 200
        assert record(server) == recorded
        truncate(tmp_path / "classifier/model.safetensors")
        assert record(server) == recorded


def test_another_model_in_the_same_place(tmp_path):
    """An exchanged directory is taken by the next load, whole; until then the old one answers."""
    other = served_models("longformer")["classification_multilabel"]
    with Server(models(tmp_path), "--allow_model_control=true") as server:
        recorded = record(server)
        shutil.rmtree(tmp_path / "classifier")
        shutil.copytree(other, tmp_path / "classifier")
        assert record(server) == recorded
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(4)
        assert server.post("/v2/repository/models/classifier/load", {})[0] == 200
        assert record(server) != recorded
        shutil.rmtree(tmp_path / "classifier")
        shutil.copytree(CLASSIFIER, tmp_path / "classifier")
        assert server.post("/v2/repository/models/classifier/load", {})[0] == 200
        assert record(server) == recorded


def file_pages(pid, name):
    """Bytes of resident pages that are still the file's."""
    total, mine = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            mine = line.endswith(name)
        elif mine and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def test_no_page_of_the_file_is_read_while_serving(tmp_path):
    with Server(models(tmp_path)) as server:
        recorded = record(server)
        wait_until(lambda: record(server) == recorded)
        for name in ("classifier", "code-lm"):
            assert file_pages(server.process.pid, f"{name}/model.safetensors") == 0


def test_truncated_in_the_middle_of_a_load(tmp_path):
    """A file that shrinks again and again while it is loaded ends loads with a reason, never the
    process."""
    shutil.copytree(LM, tmp_path / "code-lm")
    weights = tmp_path / "code-lm/model.safetensors"
    whole = weights.read_bytes()
    with Server([f"classifier={CLASSIFIER},code-lm={tmp_path / 'code-lm'}"],
                "--allow_model_control=true") as server:
        recorded = record(server)
        statuses = set()
        for round_number in range(40):
            weights.write_bytes(whole)
            cut = len(whole) * (round_number % 8) // 8
            timer = threading.Timer(0.001 * round_number, os.truncate, (weights, cut))
            timer.start()
            statuses.add(server.post("/v2/repository/models/code-lm/load", {})[0])
            timer.join()
        assert 200 not in statuses or len(statuses) > 1, statuses
        weights.write_bytes(whole)
        assert server.post("/v2/repository/models/code-lm/load", {})[0] == 200
        assert record(server) == recorded
