"""BERT's classes against the same in NumPy, with random weights."""

import json

import numpy as np
import pytest

from plain_bert import WIDTH, WORDS, Bert
from server_process import Server

POOLER = {"bert.pooler.dense.weight": (WIDTH, WIDTH), "bert.pooler.dense.bias": (WIDTH,)}
CLS, SEP, MASK = (WORDS.index(word) for word in ("[CLS]", "[SEP]", "[MASK]"))
IDS = [CLS, 5, 7, 8, 11, SEP]


def classifier(rows, name="classifier"):
    return {f"{name}.weight": (rows, WIDTH), f"{name}.bias": (rows,)}


MODELS = {
    "texts": Bert("BertForSequenceClassification", {**POOLER, **classifier(3)}, seed=1),
    "tokens": Bert("BertForTokenClassification", classifier(4), seed=2),
    "answers": Bert("BertForQuestionAnswering", classifier(2, "qa_outputs"), seed=3),
    "masks": Bert("BertForMaskedLM", {
        "cls.predictions.transform.dense.weight": (WIDTH, WIDTH),
        "cls.predictions.transform.dense.bias": (WIDTH,),
        "cls.predictions.transform.LayerNorm.weight": (WIDTH,),
        "cls.predictions.transform.LayerNorm.bias": (WIDTH,),
        "cls.predictions.bias": (len(WORDS),),
        # Left by the pre-training, in every published file.
        "cls.seq_relationship.weight": (2, WIDTH), "cls.seq_relationship.bias": (2,),
        **POOLER}, seed=4),
    "choices": Bert("BertForMultipleChoice", {**POOLER, **classifier(1)}, seed=5),
    "base": Bert("BertModel", {"pooler.dense.weight": (WIDTH, WIDTH),
                               "pooler.dense.bias": (WIDTH,)}, prefix="", seed=6),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    changes = {"texts": {"num_labels": 3}, "tokens": {"num_labels": 4},
               # The class and the labels are found by the tensors.
               "masks": {"architectures": None}}
    for name, model in MODELS.items():
        model.save(folder / name, **changes.get(name, {}))
    with Server([folder], "--dtype=fp32") as server:
        yield server


def infer(server, model, output, *rows, **more):
    """An output of one request with these rows of ids, of equal length."""
    inputs = [{"name": "input_ids", "datatype": "INT64", "shape": [len(rows), len(rows[0])],
               "data": [list(row) for row in rows]}]
    for name, values in more.items():
        inputs.append({"name": name, "datatype": "INT64", "shape": [1, len(values)],
                       "data": [values]})
    status, answer = server.post_json(f"/v2/models/{model}/infer",
                                      {"inputs": inputs, "outputs": [{"name": output}]})
    assert status == 200, answer
    tensor = answer["outputs"][0]
    return np.array(tensor["data"]).reshape(tensor["shape"])


def close(got, wanted):
    assert np.shape(got) == np.shape(wanted)
    assert np.abs(np.array(got) - wanted).max() < 2e-5


def test_hidden_states_and_embeddings(server):
    model = MODELS["base"]
    hidden = model.hidden(IDS)
    close(infer(server, "base", "last_hidden_state", IDS)[0], hidden)
    types = [0, 0, 0, 1, 1, 1]
    close(infer(server, "base", "last_hidden_state", IDS, token_type_ids=types)[0],
          model.hidden(IDS, types))
    for pooling, wanted in (("mean", hidden.mean(0)), ("cls", hidden[0]),
                            ("pooler", model.pooled(IDS))):
        status, answer = server.post_json("/v1/embeddings", {
            "model": "base", "input": [IDS], "pooling": pooling})
        assert status == 200, answer
        close(answer["data"][0]["embedding"], wanted)


def test_texts_and_pairs(server):
    model = MODELS["texts"]

    def logits(ids, types=None):
        return model.linear(model.pooled(ids, types), "classifier")

    close(infer(server, "texts", "logits", IDS)[0], logits(IDS))
    answer = server.post_json("/v1/classify", {"model": "texts", "text": "Long documents a",
                                               "return_logits": True})[1]
    close(answer["logits"], logits(IDS))
    # The second text has the other token type.
    answer = server.post_json("/v1/classify", {
        "model": "texts", "text": "long", "text_pair": "a b", "return_logits": True})[1]
    close(answer["logits"], logits([CLS, 5, SEP, 11, 12, SEP], [0, 0, 0, 1, 1, 1]))


def test_a_tokenizer_that_gives_no_token_types(tmp_path):
    model = MODELS["texts"]
    folder = model.save(tmp_path / "model", num_labels=3)
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "BertTokenizer", "do_lower_case": True,
        "model_input_names": ["input_ids", "attention_mask"]}))
    with Server([folder], "--dtype=fp32") as server:
        answer = server.post_json("/v1/classify", {
            "text": "long", "text_pair": "a b", "return_logits": True})[1]
    close(answer["logits"],
          model.linear(model.pooled([CLS, 5, SEP, 11, 12, SEP], [0] * 6), "classifier"))


def test_tokens_answers_masks_and_choices(server):
    model = MODELS["tokens"]
    close(infer(server, "tokens", "logits", IDS)[0], model.linear(model.hidden(IDS), "classifier"))
    model = MODELS["answers"]
    starts_and_ends = model.linear(model.hidden(IDS), "qa_outputs")
    close(infer(server, "answers", "start_logits", IDS)[0], starts_and_ends[:, 0])
    close(infer(server, "answers", "end_logits", IDS)[0], starts_and_ends[:, 1])
    text, words = "long documents, reading", ["long", "document", "s", ",", "read", "ing"]
    pair = [CLS, 11, SEP, 5, 7, 8, 14, 9, 10, SEP]
    scores = model.linear(model.hidden(pair, [0] * 3 + [1] * 7), "qa_outputs")[3:9]
    spans = {(i, j): scores[i, 0] + scores[j, 1] for i in range(6) for j in range(i, 6)}
    first, last = max(spans, key=spans.get)
    begin = text.index(words[first])
    end = text.index(words[last], begin) + len(words[last])
    status, answer = server.post_json("/v1/answer", {
        "model": "answers", "question": "a", "text": text, "top_k": 1})
    assert status == 200, answer
    assert answer["answers"][0]["text"] == text[begin:end], answer
    masked = [CLS, 5, MASK, 8, SEP]
    close(infer(server, "masks", "logits", masked)[0], MODELS["masks"].words(masked))
    log = server.log()
    assert "taken as BertForMaskedLM" in log and "cls.seq_relationship.weight" in log
    model = MODELS["choices"]
    choices = [[CLS, 5, SEP, 11, SEP], [CLS, 5, SEP, 12, SEP]]
    tensor = {"name": "input_ids", "datatype": "INT64", "shape": [1, 2, 5], "data": choices}
    status, answer = server.post_json("/v2/models/choices/infer", {
        "inputs": [tensor], "outputs": [{"name": "logits"}]})
    assert status == 200, answer
    close(answer["outputs"][0]["data"],
          [model.linear(model.pooled(ids), "classifier")[0] for ids in choices])


def test_the_same_bits_in_a_batch(server):
    others = [[CLS, 6, 9, 10, 12, SEP], [CLS, 13, 14, 15, 5, SEP]]
    alone = infer(server, "texts", "logits", IDS)[0]
    assert (infer(server, "texts", "logits", others[0], IDS, others[1])[1] == alone).all()


def test_positions_end_with_the_table(server):
    assert json.loads(server.get("/v1/models/base")[2])["max_tokens"] == 40
    status, answer = server.post_json("/v1/embeddings", {"model": "base",
                                                         "input": "long " * 41})
    assert status == 400 and "40" in answer["error"]["message"]
