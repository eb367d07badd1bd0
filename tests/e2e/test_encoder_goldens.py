"""Every fixture of the encoder families through the running server, over /v2/…/infer (HTTP,
binary tensors) and ModelInfer (gRPC): fp32 within the case's tolerance."""

import json

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from goldens import (assert_close, case_facts, encoder_cases, expected, expected_item, items,
                     served_name, tensors)
from server_process import GOLDEN

# Fixture tensor -> (output, request parameters).
ITEM_OUTPUTS = {
    "logits": ("logits", {}),
    "probs": ("probabilities", {}),
    "start_logits": ("start_logits", {}),
    "end_logits": ("end_logits", {}),
    "last_hidden_state": ("last_hidden_state", {}),
    "pooler_output": ("embedding", {"pooling": "pooler"}),
    "cls": ("embedding", {"pooling": "cls"}),
    "mean": ("embedding", {"pooling": "mean", "normalize": False}),
    "mean_normalized": ("embedding", {"pooling": "mean", "normalize": True}),
}
# Fixture tensors -> input of the protocol, for one document and for pairs encoded apart.
DOCUMENT = {"input_ids": "input_ids", "attention_mask": "attention_mask",
            "global_attention_mask": "global_attention_mask", "token_type_ids": "token_type_ids"}
PAIRS = [{"input_ids_0": "input_ids", "input_ids_1": "input_ids_pair"},
         {"input_ids_1": "input_ids", "input_ids_2": "input_ids_pair"}]
TEXTS = [{"text_bytes": "text"}, {"text_bytes_0": "text", "text_bytes_1": "text_pair"}]


class Client:
    """One inference call over either transport; returns name -> array."""

    def __init__(self, server, transport):
        self.module = tritonclient.http if transport == "http" else tritonclient.grpc
        address = server.http if transport == "http" else server.grpc
        self.client = self.module.InferenceServerClient(address)

    def infer(self, model, inputs, outputs, parameters=None):
        tensors_in = []
        for name, array in inputs.items():
            datatype = "BYTES" if array.dtype == object else "INT64"
            tensor = self.module.InferInput(name, list(array.shape), datatype)
            tensor.set_data_from_numpy(array)
            tensors_in.append(tensor)
        wanted = [self.module.InferRequestedOutput(name) for name in outputs]
        answer = self.client.infer(model, tensors_in, outputs=wanted, parameters=parameters or {})
        return {name: answer.as_numpy(name) for name in outputs}


@pytest.fixture(scope="module", params=["http", "grpc"])
def client(request, golden_server):
    return Client(golden_server, request.param)


def item_inputs(inputs, index, names):
    """The tensors of item `index` with a leading item dimension."""
    return {name: items(inputs, stored)[index][None]
            for stored, name in names.items() if index in items(inputs, stored)}


def layout(inputs):
    """The names by which the fixture's items are stored."""
    return next((names for names in PAIRS if items(inputs, next(iter(names)))), DOCUMENT)


@pytest.mark.parametrize("family, case", encoder_cases(), ids=lambda value: getattr(
    value, "name", value))
def test_items(client, family, case):
    inputs = tensors(case / "inputs.safetensors")
    outputs = tensors(case / "expected.safetensors")
    tolerance = case_facts(case)["tolerance"]["logits"]
    names, model = layout(inputs), served_name(family, case.name)
    compared = 0
    for index in items(inputs, next(iter(names))):
        for key, (output, parameters) in ITEM_OUTPUTS.items():
            wanted = expected_item(outputs, key, index) if "batch.input_ids" not in inputs \
                else expected(outputs, f"{key}.{index}")
            if wanted is None or (key == "logits" and "input_ids" in inputs):
                continue
            answer = client.infer(model, item_inputs(inputs, index, names), [output], parameters)
            answer = answer[output][0]
            if output != "embedding":  # Fixtures store a sample of the rows of long items.
                answer = answer[outputs.get(f"positions.{index}", slice(None))]
            assert_close(answer, wanted, tolerance, f"{case.name} {key}.{index}")
            compared += 1
    for key in ("batch", "batch_garbage", "batch_globals"):
        wanted = expected(outputs, f"{key}.logits")
        if wanted is None:
            continue
        ids = inputs.get(f"{key}.input_ids", inputs["batch.input_ids"])
        named = {"input_ids": ids, "attention_mask": inputs["batch.attention_mask"]}
        if f"{key}.global_attention_mask" in inputs:
            named["global_attention_mask"] = inputs[f"{key}.global_attention_mask"]
        assert_close(client.infer(model, named, ["logits"])["logits"], wanted, tolerance, key)
        compared += 1
    if "input_ids" in inputs:  # multiple choice: [1, choices, tokens]
        answer = client.infer(model, {"input_ids": inputs["input_ids"]}, ["logits"])
        assert_close(answer["logits"], expected(outputs, "logits"), tolerance, case.name)
        compared += 1
    assert compared or "mask_logits.0" in outputs


@pytest.mark.parametrize(
    "family, case", [(family, case) for family, case in encoder_cases()
                     if any(name.startswith("text_bytes")
                            for name in tensors(case / "inputs.safetensors"))],
    ids=lambda value: getattr(value, "name", value))
def test_texts_of_bytes(client, family, case):
    inputs = tensors(case / "inputs.safetensors")
    outputs = tensors(case / "expected.safetensors")
    names = next(names for names in TEXTS if items(inputs, next(iter(names))))
    for index in items(inputs, next(iter(names))):
        named = {name: np.array([items(inputs, stored)[index].tobytes()], dtype=object)
                 for stored, name in names.items()}
        answer = client.infer(served_name(family, case.name), named, ["logits"])
        assert_close(answer["logits"][0], expected_item(outputs, "logits", index), 1e-4, index)


FORMS = ["checkpoint_forms", "checkpoint_forms-alias-decoder", "checkpoint_forms-sharded",
         "checkpoint_forms-both-names-and-position-ids", "checkpoint_forms-f16",
         "checkpoint_forms-bf16"]


@pytest.mark.parametrize("form", FORMS)
def test_checkpoint_forms(client, form):
    case = GOLDEN / "longformer/checkpoint_forms"
    inputs = tensors(case / "inputs.safetensors")
    outputs = tensors(case / "expected.safetensors")
    half = {"f16": "logits.0.model_f16", "bf16": "logits.0.model_bf16"}.get(form.split("-")[-1])
    wanted = outputs[half] if half else outputs["logits.0.f64"]
    answer = client.infer(form, {"input_ids": inputs["input_ids.0"][None]}, ["logits"])
    assert_close(answer["logits"][0], wanted, 1e-4, form)


def text(value):
    return np.array([value.encode()], dtype=object)


def records(case):
    return list(enumerate(json.loads((GOLDEN / "longformer" / case / "texts.json").read_text())))


def test_text_classification(client):
    case = GOLDEN / "longformer/text_classification"
    outputs = tensors(case / "expected.safetensors")
    for index, record in records("text_classification"):
        named = {"text": text(record["text"])}
        if record.get("text_pair") is not None:
            named["text_pair"] = text(record["text_pair"])
        answer = client.infer(case.name, named, ["logits", "probabilities", "label"],
                              {"truncate": True})
        assert_close(answer["logits"][0], expected(outputs, f"logits.{index}"), 1e-4, index)
        assert_close(answer["probabilities"][0], list(record["probs"].values()), 1e-4, index)
        assert answer["label"][0].decode() == record["label"]


def test_text_question_answering(client):
    case = GOLDEN / "longformer/text_question_answering"
    outputs = tensors(case / "expected.safetensors")
    for index, record in records("text_question_answering"):
        named = {"question": text(record["question"]), "text": text(record["context"])}
        answer = client.infer(case.name, named, ["answer", "start_logits", "end_logits"],
                              {"truncate": True})
        for key in ("start_logits", "end_logits"):
            assert_close(answer[key][0], expected(outputs, f"{key}.{index}"), 1e-4, key)
        best = json.loads(answer["answer"][0])
        assert best["text"] == record["answer"]
        assert [best["start"], best["end"]] == record["span_codepoints"]


def test_text_fill_mask(client):
    case = GOLDEN / "longformer/text_fill_mask"
    outputs = tensors(case / "expected.safetensors")
    for index, record in records("text_fill_mask"):
        answer = client.infer(case.name, {"text": text(record["text"])}, ["top", "logits"])
        at_masks = answer["logits"][0][record["mask_positions"]]
        assert_close(at_masks, expected(outputs, f"mask_logits.{index}"), 1e-4, index)
        for found, ids, texts, logprobs in zip(json.loads(answer["top"][0]), record["top5_ids"],
                                               record["top5_text"], record["top5_logprobs"],
                                               strict=True):
            assert [candidate["token_id"] for candidate in found] == ids
            assert [candidate["token"] for candidate in found] == texts
            assert_close([candidate["logprob"] for candidate in found], logprobs, 1e-4, index)
