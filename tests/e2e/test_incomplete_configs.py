"""Directories whose files leave out what the weights say, or hold more than the model has: classes,
labels, surplus tensors."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from goldens import GOLDEN
from plain_bert import WIDTH, Bert
from server_process import SERVER, Server

# case -> the task that its tensors are of.
CASES = {"longformer/text_classification": "text-classification",
         "longformer/text_fill_mask": "fill-mask",
         "longformer/text_question_answering": "question-answering",
         "longformer/embeddings": "embedding",
         "longformer/token_classification": "token-classification",
         "longformer/multiple_choice": "multiple-choice"}


def without(folder, case, *keys):
    """A copy of a fixture's model without these members of its config.json."""
    shutil.copytree(GOLDEN / case / "model", folder)
    config = json.loads((folder / "config.json").read_text())
    for key in keys:
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def check(folder, *flags):
    done = subprocess.run([SERVER, "--check", folder, *flags], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("case, task", CASES.items(), ids=CASES)
def test_check_says_what_a_directory_was_taken_for(case, task, tmp_path):
    code, report = check(without(tmp_path / "model", case, "architectures"))
    assert code == 0, report
    assert f"task:         {task}" in report
    note = next(line for line in report.splitlines() if line.startswith("note:"))
    assert "config.json names no class" in note and "taken as Longformer" in note


def test_answers_are_the_same(tmp_path):
    case = "longformer/text_classification"
    bare = without(tmp_path / "bare", case, "architectures", "id2label", "label2id", "num_labels")
    tensors = load_file(bare / "model.safetensors")
    tensors["roberta.pooler.dense.weight"] = np.ones((3, 2), np.float32)
    tensors["embeddings.position_ids"] = np.arange(7)
    save_file(tensors, bare / "model.safetensors", {"format": "pt"})
    with Server([f"whole={GOLDEN / case / 'model'},bare={bare}"], "--dtype=fp32") as server:
        answers = [server.post_json("/v1/classify", {"model": name, "text": "a text",
                                                     "return_logits": True})[1]
                   for name in ("whole", "bare")]
        assert answers[0]["logits"] == answers[1]["logits"]
        assert {label["name"] for label in answers[1]["labels"]} == \
            {f"LABEL_{i}" for i in range(len(answers[0]["labels"]))}
        notes = [line for line in server.log().splitlines() if '"model":"bare"' in line]
        text = "\n".join(notes)
        assert "names no class" in text and "by the rows of classifier.out_proj.weight" in text
        assert "left aside: 1 tensor(s)" in text and "roberta.pooler.dense.weight [3, 2]" in text


def test_the_log_says_what_a_generator_was_taken_for(tmp_path):
    folder = without(tmp_path / "led", "led/generate", "architectures")
    with Server([f"led={folder}"]) as server:
        loaded = [line for line in server.log().splitlines() if '"model":"led"' in line]
        assert "taken as LEDForConditionalGeneration" in "\n".join(loaded)


def test_names_of_labels_need_no_count_in_config(tmp_path):
    folder = without(tmp_path / "model", "longformer/text_classification", "id2label", "label2id",
                     "num_labels")
    (folder / "longview.json").write_text('{"labels": ["a", "b", "c", "d", "e"]}')
    assert "5: a, b, c, d, e" in check(folder)[1]
    (folder / "longview.json").write_text('{"labels": ["a", "b"]}')
    code, report = check(folder)
    assert code == 1 and "classifier.out_proj.weight" in report


def test_two_labels_are_the_default_and_no_news(tmp_path):
    for rows, notes in ((2, 0), (3, 1)):
        head = {"bert.pooler.dense.weight": (WIDTH, WIDTH), "bert.pooler.dense.bias": (WIDTH,),
                "classifier.weight": (rows, WIDTH), "classifier.bias": (rows,)}
        folder = Bert("BertForSequenceClassification", head).save(tmp_path / str(rows))
        code, report = check(folder)
        assert code == 0 and report.count("note:") == notes, report
        assert f"labels:       {rows}: LABEL_0, LABEL_1" in report


def test_a_chosen_task_overrides(tmp_path):
    folder = without(tmp_path / "model", "longformer/token_classification", "architectures")
    (folder / "longview.json").write_text('{"task": "question-answering"}')
    code, report = check(folder)
    assert code == 1 and "qa_outputs" in report
    # The flag comes first.
    code, report = check(folder, "--task=embedding")
    assert code == 0 and "taken as LongformerModel" in report
    (folder / "longview.json").write_text('{"task": "juggling"}')
    code, report = check(folder)
    assert code == 1 and "juggling" in report
    code, report = check(folder, "--task=juggling")
    assert code == 2 and "--task" in report and "juggling" in report
    with Server([f"m={GOLDEN / 'longformer/text_fill_mask/model'}"], "--task=embedding") as server:
        assert server.post_json("/v1/embeddings", {"input": "a"})[0] == 200
        assert server.post_json("/v1/fill-mask", {"model": "m", "text": "a"})[0] == 400
        assert "taken as LongformerModel" in server.log()


def with_a_token_more(folder, case):
    """A copy of a fixture whose tokenizer has an id more than the table has rows; and that id."""
    shutil.copytree(GOLDEN / case / "model", folder)
    rows = json.loads((folder / "config.json").read_text())["vocab_size"]
    (folder / "added_tokens.json").write_text(json.dumps({f"<more{rows}>": rows}))
    return rows


def test_a_token_beyond_the_table_is_refused_where_it_is_used(tmp_path):
    cases = {"longformer/text_classification": "/v1/classify",
             "led/text_summarize": "/v1/completions"}
    for case, route in cases.items():
        name = case.split("/")[1]
        rows = with_a_token_more(tmp_path / name, case)
        code, report = check(tmp_path / name)
        assert code == 0, report
        assert f"ids up to {rows}, the model's table has {rows} rows" in report
        member = "text" if route == "/v1/classify" else "prompt"
        with Server([f"whole={GOLDEN / case / 'model'},more={tmp_path / name}"],
                    "--dtype=fp32") as server:
            plain = [server.post_json(route, {"model": model, member: "a text"})
                     for model in ("whole", "more")]
            status, refused = server.post_json(
                route, {"model": "more", member: f"a <more{rows}> text"})
        assert plain[0][0] == plain[1][0] == 200, plain
        assert status == 400
        assert f'token "<more{rows}>" at position' in refused["error"]["message"]
        assert f"has id {rows}, the model's table has {rows} rows" in refused["error"]["message"]


def test_a_template_beyond_the_table_is_another_models(tmp_path):
    folder = tmp_path / "model"
    rows = with_a_token_more(folder, "longformer/text_classification")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["post_processor"]["sep"] = [f"<more{rows}>", rows]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    code, report = check(folder)
    assert code != 0
    assert f'the tokenizer is another model\'s: around every text, token "<more{rows}>"' in report
