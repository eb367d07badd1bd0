"""ListOps: the grammar, the data made of it, and every family's way from training to the server's
answers, in a few steps of a tiny model."""

import json
import random

import numpy as np
import pytest

TRAINER = "listops"


@pytest.fixture(scope="module")
def grammar(modules):
    return modules("grammar")


@pytest.fixture(scope="module")
def data(modules):
    return modules("data")


@pytest.mark.parametrize("text, value", [
    ("7", 7),
    ("[MAX 4 [MIN 2 3 ] 1 ]", 4),
    ("[SM 9 9 9 ]", 7),
    ("[MED 1 5 8 9 2 ]", 5),
    ("[MED 1 4 ]", 2),
    ("[MIN [SM 5 6 ] [MAX 0 0 ] 3 ]", 0),
])
def test_values(grammar, text, value):
    assert grammar.value(text.split()) == value


@pytest.mark.parametrize("text", ["", "]", "[MAX ]", "[MAX 1", "1 2", "[MAX 1 2 ] ]", "[SUM 1 2 ]"])
def test_what_is_no_expression(grammar, text):
    with pytest.raises(ValueError):
        grammar.value(text.split())


def test_expressions_are_of_the_wanted_length_and_follow_the_seed(grammar):
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


LANGUAGES = {"Python": "import os\nx = [1, 2]\n", "C": "#include <a.h>\nint f(int);\n",
             "Caf\u00e9": "caf\u00e9 \u2014 th\u00e9\n"}


@pytest.fixture(scope="module")
def work(tmp_path_factory, data):
    """Both tasks, small: expressions, and files in the order of their languages, as collect.py writes
    them."""
    folder = tmp_path_factory.mktemp("listops")
    rng = random.Random(5)
    for split, count in (("train", 12), ("test", 6)):
        lines = [json.dumps({"language": name, "text": f"{split} {i} " + text * rng.randint(1, 3)})
                 for name, text in LANGUAGES.items() for i in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data.main(["listops", "--work", str(folder), "--train", "64", "--test", "16", "--shortest", "20",
               "--longest", "70"])
    data.main(["bytes", "--work", str(folder), "--documents", str(folder), "--longest", "40"])
    return folder


def test_splits_share_nothing_and_labels_are_values(work, data, grammar):
    splits = {name: data.Documents(work / "listops" / f"{name}.npz") for name in ("train", "test")}
    texts = {name: {tuple(part[i]) for i in range(len(part))} for name, part in splits.items()}
    assert len(texts["train"]) == 64 and len(texts["test"]) == 16
    assert not texts["train"] & texts["test"]
    for part in splits.values():
        for i in range(len(part)):
            assert grammar.value([grammar.SYMBOLS[s] for s in part[i]]) == part.labels[i]


@pytest.mark.parametrize("task", ["listops", "bytes"])
def test_batches_follow_seed_and_step(task, work, data):
    part = data.Documents(work / task / "train.npz")
    for step in range(3):
        documents, labels = part.batch(1, step, 8)
        again, _ = part.batch(1, step, 8)
        assert all(np.array_equal(a, b) for a, b in zip(documents, again, strict=True))
        assert len(labels) == 8


def test_files_are_their_first_bytes_in_another_order(work, data):
    names = json.loads((work / "bytes/labels.json").read_text())
    assert names == sorted(LANGUAGES)
    for split in ("train", "test"):
        with open(work / f"{split}.jsonl", encoding="utf-8") as lines:
            given = [json.loads(line) for line in lines]
        want = [(file["language"], file["text"].encode()[:40]) for file in given]
        part = data.Documents(work / "bytes" / f"{split}.npz")
        found = [(names[part.labels[i]], part[i].astype(np.uint8).tobytes()) for i in range(len(part))]
        assert sorted(found) == sorted(want) and found != want


def test_a_run_may_be_lengthened_until_its_last_fifth(modules):
    pytest.importorskip("torch")
    train = modules("train")
    assert [train.flat(step, 1000) for step in range(800)] == [train.flat(step, 1000 * 1000)
                                                               for step in range(800)]
    for schedule in train.SCHEDULES.values():
        shares = [schedule(step, 1000) for step in range(1000)]
        top = shares.index(1)
        assert all(0 < share <= 1 for share in shares) and shares[-1] < 0.01
        assert shares[:top] == sorted(shares[:top])
        assert shares[top:] == sorted(shares[top:], reverse=True)


FAMILIES = ("transformer_ls", "luna", "cst", "longformer")


@pytest.mark.parametrize("task_name", ["listops", "bytes"])
@pytest.mark.parametrize("family", FAMILIES)
def test_from_training_to_the_servers_answers(family, task_name, work, modules, checked, served_logits):
    torch = pytest.importorskip("torch")
    export, parts, tasks, train = map(modules, ("export", "parts", "task", "train"))
    name = [family, "--task", task_name, "--work", str(work)]
    size = ["--width", "32", "--ffn", "64", "--heads", "2", "--batch", "4", "--steps", "4"]
    train.main([*name, *size, "--until", "2"])
    train.main([*name, *size])  # Goes on.
    export.main(name)
    directory = work / "models" / f"{task_name}-{family}"
    assert "text-classification" in checked(directory)
    form = tasks.family(family)
    task, splits = tasks.read(work, task_name)
    saved = torch.load(work / f"{task_name}-{family}.pt", weights_only=True)
    assert saved["step"] == 4
    model = parts.Classifier(form, saved["config"], 0)
    with torch.no_grad():
        for name, value in model.tensors().items():
            value.copy_(saved["tensors"][name])
        documents = [splits["test"][i] for i in range(5)]
        ids, real = tasks.padded(documents, form, task)
        want = model(ids, real).numpy()
    rows = [row[seen].tolist() for row, seen in zip(ids, real, strict=True)]
    got = np.array(served_logits(directory, {"documents": rows}))
    assert np.abs(got - want).max() < 1e-4
