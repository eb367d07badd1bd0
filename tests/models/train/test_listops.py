"""ListOps: the grammar, the data made of it, and every family's way from training to the server's
answers, in a few steps of a tiny model."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "models/train/listops"))
SERVER, PIPE = ROOT / "build/bin/longview-server", ROOT / "build/bin/model_pipe"

import data  # noqa: E402
import grammar  # noqa: E402


@pytest.mark.parametrize("text, value", [
    ("7", 7),
    ("[MAX 4 [MIN 2 3 ] 1 ]", 4),
    ("[SM 9 9 9 ]", 7),
    ("[MED 1 5 8 9 2 ]", 5),
    ("[MED 1 4 ]", 2),
    ("[MIN [SM 5 6 ] [MAX 0 0 ] 3 ]", 0),
])
def test_values(text, value):
    assert grammar.value(text.split()) == value


@pytest.mark.parametrize("text", ["", "]", "[MAX ]", "[MAX 1", "1 2", "[MAX 1 2 ] ]", "[SUM 1 2 ]"])
def test_what_is_no_expression(text):
    with pytest.raises(ValueError):
        grammar.value(text.split())


def test_expressions_are_of_the_wanted_length_and_follow_the_seed():
    def first(seed, count=200):
        drawn = grammar.expressions(seed, 20, 100)
        return [" ".join(next(drawn)) for _ in range(count)]

    texts = first(3)
    assert texts == first(3) and texts != first(4)
    assert len(set(texts)) == len(texts)
    assert all(20 <= len(text.split()) <= 100 for text in texts)
    values = [grammar.value(text.split()) for text in texts]
    assert set(values) == set(range(10))
    assert {symbol for text in texts for symbol in text.split()} == set(grammar.SYMBOLS)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("listops")
    data.main(["listops", "--work", str(folder), "--train", "64", "--test", "16", "--shortest", "20",
               "--longest", "70"])
    return folder


def test_splits_share_nothing_and_labels_are_values(work):
    splits = {name: data.Documents(work / "listops" / f"{name}.npz") for name in ("train", "test")}
    texts = {name: {tuple(part[i]) for i in range(len(part))} for name, part in splits.items()}
    assert len(texts["train"]) == 64 and len(texts["test"]) == 16
    assert not texts["train"] & texts["test"]
    for part in splits.values():
        for i in range(len(part)):
            assert grammar.value([grammar.SYMBOLS[s] for s in part[i]]) == part.labels[i]


def test_batches_follow_seed_and_step(work):
    part = data.Documents(work / "listops/train.npz")
    for step in range(3):
        documents, labels = part.batch(1, step, 8)
        again, _ = part.batch(1, step, 8)
        assert all(np.array_equal(a, b) for a, b in zip(documents, again, strict=True))
        assert len(labels) == 8


def test_source_files_as_bytes(tmp_path):
    for split, text in (("train", "x = 1\n"), ("test", "é")):
        (tmp_path / f"{split}.jsonl").write_text(
            json.dumps({"language": "Python", "text": text}) + "\n", encoding="utf-8")
    data.main(["bytes", "--work", str(tmp_path), "--documents", str(tmp_path)])
    assert data.Documents(tmp_path / "bytes/test.npz")[0].tolist() == list("é".encode())
    assert json.loads((tmp_path / "bytes/labels.json").read_text()) == ["Python"]


FAMILIES = ("transformer_ls", "luna", "cst", "longformer")


@pytest.mark.parametrize("family", FAMILIES)
def test_from_training_to_the_servers_answers(family, work):
    torch = pytest.importorskip("torch")
    import export
    import parts
    import task as tasks
    import train

    size = ["--width", "32", "--ffn", "64", "--heads", "2", "--batch", "4"]
    train.main([family, "--work", str(work), "--steps", "2", *size])
    train.main([family, "--work", str(work), "--steps", "4", *size])  # Goes on.
    export.main([family, "--work", str(work)])
    directory = work / "models" / f"listops-{family}"
    if not SERVER.exists():
        pytest.skip("no server is built")
    checked = subprocess.run([SERVER, "--check", directory], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert "text-classification" in checked.stdout
    if not PIPE.exists():
        pytest.skip("no model_pipe is built")
    form = tasks.family(family)
    task, splits = tasks.read(work, "listops")
    saved = torch.load(work / f"listops-{family}.pt", weights_only=True)
    model = parts.Classifier(form, saved["config"], 0)
    with torch.no_grad():
        for name, value in model.tensors().items():
            value.copy_(saved["tensors"][name])
        documents = [splits["test"][i] for i in range(5)]
        ids, real = tasks.padded(documents, form, task)
        want = model(ids, real).numpy()
    rows = [row[seen].tolist() for row, seen in zip(ids, real, strict=True)]
    done = subprocess.run([PIPE, directory, "fp32", "1"], text=True, capture_output=True,
                          input=json.dumps({"documents": rows}) + "\n")
    got = np.array(json.loads(done.stdout.splitlines()[-1])["logits"])
    assert np.abs(got - want).max() < 1e-4
