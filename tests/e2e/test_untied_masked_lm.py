"""Masked language models whose decoder is not tied to the words: its weight and bias are its own,
whatever the head's bias says, and the head's where no other is stored."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from plain_bert import WIDTH, WORDS, Bert
from server_process import Server

VOCAB, PAD = len(WORDS), 1
HEAD = {"cls.predictions.transform.dense.weight": (WIDTH, WIDTH),
        "cls.predictions.transform.dense.bias": (WIDTH,),
        "cls.predictions.transform.LayerNorm.weight": (WIDTH,),
        "cls.predictions.transform.LayerNorm.bias": (WIDTH,),
        "cls.predictions.bias": (VOCAB,), "cls.predictions.decoder.weight": (VOCAB, WIDTH)}
OWN = {**HEAD, "cls.predictions.decoder.bias": (VOCAB,)}
IDS = [2, 5, 4, 8, 3]
ROBERTA = [("bert.", "roberta."), ("cls.predictions.transform.dense", "lm_head.dense"),
           ("cls.predictions.transform.LayerNorm", "lm_head.layer_norm"),
           ("cls.predictions.", "lm_head.")]


def save(model, folder, model_type):
    """The model as one of `model_type` whose positions begin behind the padding's, as RoBERTa's."""
    if model_type == "bert":
        return model.save(folder, tie_word_embeddings=False)
    model.save(folder, tie_word_embeddings=False, model_type=model_type, pad_token_id=PAD)
    tensors = dict(model.tensors)
    table = "bert.embeddings.position_embeddings.weight"
    tensors[table] = np.roll(tensors[table], PAD + 1, axis=0)
    renamed = {}
    for name, tensor in tensors.items():
        for before, after in ROBERTA:
            name = name.replace(before, after)
        renamed[name] = tensor
    save_file(renamed, folder / "model.safetensors", {"format": "pt"})


CLASSES = {"bert": "BertForMaskedLM", "roberta": "RobertaForMaskedLM",
           "xlm-roberta": "XLMRobertaForMaskedLM"}
MODELS = {f"{model_type}-{name}": (model_type, Bert(CLASSES[model_type], head, seed=11))
          for model_type in CLASSES for name, head in (("own", OWN), ("shared", HEAD))}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untied")
    for name, (model_type, model) in MODELS.items():
        save(model, folder / name, model_type)
    with Server([folder], "--dtype=fp32") as running:
        yield running


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_decoder(server, name):
    model = MODELS[name][1]
    if name.endswith("shared"):
        model.tensors["cls.predictions.decoder.bias"] = model.tensors["cls.predictions.bias"]
    status, answer = server.post_json(f"/v2/models/{name}/infer", {
        "inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(IDS)],
                    "data": [IDS]}], "outputs": [{"name": "logits"}]})
    assert status == 200, answer
    logits = np.array(answer["outputs"][0]["data"]).reshape(len(IDS), VOCAB)
    assert np.abs(logits - model.words(IDS)).max() < 2e-5
