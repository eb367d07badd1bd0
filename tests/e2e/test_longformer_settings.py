"""Longformer with random weights and configurations beside HuggingFace's classes, drawn anew in
every run (slow; needs torch and transformers 5). LONGVIEW_SEED repeats a run."""


import numpy
import pytest

from drawn_models import SEED, assert_same, infer, seeded, serve

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow

MODELS = 30
REQUESTS_PER_MODEL = 4
HEADS = {
    "LongformerForSequenceClassification": ("logits",),
    "LongformerForTokenClassification": ("logits",),
    "LongformerForMaskedLM": ("logits",),
    "LongformerForQuestionAnswering": ("start_logits", "end_logits"),
    "LongformerModel": ("last_hidden_state",),
}


def draw_model(rng):
    """A model of a random head and configuration, and that configuration."""
    heads = rng.choice([1, 2, 3, 4])
    layers = rng.choice([1, 2, 3])
    # HuggingFace pads to the largest window, and every other must divide that length.
    base = rng.choice([4, 6, 10, 16])
    windows = [base * rng.choice([1, 2, 4]) for _ in range(layers)]
    pad = rng.choice([0, 1, 3])
    head = rng.choice(sorted(HEADS))
    labels = 2 if "Question" in head else rng.choice([1, 2, 5])
    hidden = heads * rng.choice([4, 5, 8, 24, 64])
    config = transformers.LongformerConfig(
        vocab_size=rng.choice([40, 151]), hidden_size=hidden,
        num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=rng.choice([7, 32, 96]),
        attention_window=windows if rng.random() < 0.7 else windows[0],
        max_position_embeddings=200 + pad + 1, type_vocab_size=rng.choice([1, 2, 3]),
        pad_token_id=pad, bos_token_id=4, eos_token_id=2, sep_token_id=2,
        hidden_act=rng.choice(["gelu", "gelu", "gelu_new", "gelu_fast", "relu", "silu"]),
        layer_norm_eps=rng.choice([1e-5, 1e-12, 1e-3]), initializer_range=hidden ** -0.5,
        num_labels=labels,
        tie_word_embeddings=rng.random() < 0.8,
        problem_type=rng.choice([None, None, "multi_label_classification"]))
    model = getattr(transformers, head)(config).eval()
    with torch.no_grad():  # Biases begin at zero otherwise.
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return head, config, model


def draw_request(rng, config):
    """Rows of ids padded at their ends, their masks, global positions and token types."""
    lengths = [rng.choice([1, 2, 5, 17, 64, 65, 130, 200]) for _ in range(rng.choice([1, 1, 2, 3]))]
    width = max(lengths)
    ids = numpy.full((len(lengths), width), config.pad_token_id)
    tensors = {"input_ids": ids, "attention_mask": numpy.zeros_like(ids)}
    for row, length in enumerate(lengths):
        ids[row, :length] = [rng.randrange(5, config.vocab_size) for _ in range(length)]
        ids[row, length // 2] = config.sep_token_id
        tensors["attention_mask"][row, :length] = 1
    marks = numpy.zeros_like(ids)
    for row, length in enumerate(lengths):
        marks[row, rng.sample(range(length), min(length, rng.choice([0, 1, 3])))] = 1
    tensors["global_attention_mask"] = marks
    if config.type_vocab_size > 1 and rng.random() < 0.5:
        tensors["token_type_ids"] = numpy.array(
            [[rng.randrange(config.type_vocab_size) for _ in row] for row in ids])
    return lengths, tensors


def theirs(model, tensors, outputs):
    with torch.no_grad():
        answer = model(**{name: torch.tensor(value) for name, value in tensors.items()})
    return {name: getattr(answer, name).numpy() for name in outputs}


def test_configurations_as_huggingface(tmp_path):
    print(f"LONGVIEW_SEED={SEED}")
    rng = seeded()
    models = []
    for index in range(MODELS):
        models.append(draw_model(rng))
        models[-1][2].save_pretrained(tmp_path / f"model-{index}")
    with serve(tmp_path) as server:
        for index, (head, config, model) in enumerate(models):
            for _ in range(REQUESTS_PER_MODEL):
                lengths, tensors = draw_request(rng, config)
                per_item = head == "LongformerForSequenceClassification"
                if not per_item:  # Outputs per token are for one item.
                    lengths = lengths[:1]
                    tensors = {key: value[:1] for key, value in tensors.items()}
                expected = theirs(model, tensors, HEADS[head])
                got = infer(server, f"model-{index}", tensors, HEADS[head])
                for name, value in expected.items():
                    if not per_item:  # What padding answers is nobody's business.
                        value, got[name] = value[:, :lengths[0]], got[name][:, :lengths[0]]
                    assert_same(got[name], value, f"model {index} {head} {name} {config}")
