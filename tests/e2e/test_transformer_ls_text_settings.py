"""The text classifiers of Transformer-LS with random weights and configurations beside the authors'
code, drawn anew in every run (slow; needs torch). LONGVIEW_SEED repeats a run.

  git clone https://github.com/NVIDIA/transformer-ls
  git -C transformer-ls checkout 1527c5c
  LONGVIEW_TRANSFORMER_LS=transformer-ls python -m pytest \
      tests/e2e/test_transformer_ls_text_settings.py
"""

import types

import numpy
import pytest
from drawn_models import assert_same, checkout, draw_weights, infer, seeded, serve, write_model

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

MODELS = 40
REQUESTS = 3  # Of each model.


def draw_config(rng):
    heads, layers = rng.choice([1, 2, 3, 4]), rng.choice([1, 2, 3])
    mode = rng.choice(["last_layer", "last_layer", "all_layers", "first_token", "none"])
    window, rank = rng.choice([0, 1, 2, 3, 4, 7, 8, 16]), rng.choice([0, 1, 2, 5, 32])
    if window == 0 and rank == 0 and not (mode == "all_layers" or
                                          (mode == "last_layer" and layers == 1)):
        rank = 1  # Tokens would see nothing.
    pair = rng.random() < 0.3
    return {"model_type": "transformer_ls",
            "architectures": ["TransformerLSForSequence" + ("Pair" if pair else "") +
                              "Classification"],
            "vocab_size": rng.choice([60, 257]), "d": heads * rng.choice([2, 4, 5, 16, 24]),
            "heads": heads, "layers": layers, "ff": rng.choice([7, 32, 96]),
            "max_seq_len": rng.choice([40, 100, 129]), "window": window, "rank": rank,
            "cls_mode": mode,
            "pool_divisor": rng.choice(["length", "max_seq_len"]) if mode == "none" else "length",
            "tied_weights": rng.random() < 0.3, "ln_eps": rng.choice([1e-5, 1e-2]),
            "num_labels": rng.choice([1, 2, 10])}


def length_read(config, tokens):
    """Positions that the authors' code reads for so many tokens: whole windows."""
    window = max(config["window"], 1)
    return -(-tokens // window) * window


def build(config):
    """The authors' module, with a position for every padded place, and its tensors as stored."""
    from model_wrapper import ModelForSC, ModelForSCDual
    given = types.SimpleNamespace(
        vocab_size=config["vocab_size"], embedding_dim=config["d"], transformer_dim=config["d"],
        transformer_hidden_dim=config["ff"], head_dim=config["d"] // config["heads"],
        num_head=config["heads"], num_layers=config["layers"], num_classes=config["num_labels"],
        max_seq_len=length_read(config, config["max_seq_len"]) + 1, attn_type="lsta",
        window_size=config["window"], num_landmarks=config["rank"],
        tied_weights=config["tied_weights"], cls_last_layer=config["cls_mode"] == "last_layer",
        cls_token=config["cls_mode"] == "all_layers",
        pooling_mode="CLS" if config["cls_mode"] == "first_token" else "MEAN", dropout_prob=0,
        attention_dropout=0, fp32_attn=False, mixed_precision=False, debug=False,
        conv_kernel_size=-1)
    pair = "Pair" in config["architectures"][0]
    model = (ModelForSCDual if pair else ModelForSC)(given).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = config["ln_eps"]
    draw_weights(model)
    tensors = model.state_dict()
    name = "model.embeddings.position_embeddings.weight"
    tensors[name] = tensors[name][:config["max_seq_len"]]
    return model, tensors


def theirs(config, model, documents):
    """Logits of one item: a document or two."""
    from model_wrapper import append_cls
    rows = []
    for ids in documents:
        tokens = config["max_seq_len"] if config["pool_divisor"] == "max_seq_len" else len(ids)
        padded = torch.zeros(1, length_read(config, tokens), dtype=torch.long)
        padded[0, :len(ids)] = torch.tensor(ids)
        mask = (padded != 0).long()
        if config["cls_mode"] == "first_token":
            padded, mask = append_cls(padded, mask, config["vocab_size"])
        states = model.model(padded, mask)
        if config["cls_mode"] == "none":  # The mean is of the places that the divisor names.
            states = states.sum(1, keepdim=True) / tokens
        rows.append(states)
    if len(rows) == 2:
        return model.seq_classifer(*rows)
    return model.seq_classifer.mlpblock(rows[0][:, 0])


def draw_documents(rng, config, pair):
    most = config["max_seq_len"] - (config["cls_mode"] == "first_token")
    documents = []
    for _ in range(2 if pair else 1):
        length = rng.choice([1, 2, 3, 8, 17, 39, most])
        ids = [rng.randrange(1, config["vocab_size"]) for _ in range(min(length, most))]
        for hole in rng.sample(range(len(ids)), len(ids) // 6 if rng.random() < 0.3 else 0):
            ids[hole] = 0  # Masked; the last id stays.
        ids[-1] = ids[-1] or 1
        documents.append(ids)
    return documents


def test_configurations_as_the_authors(tmp_path):
    checkout("LONGVIEW_TRANSFORMER_LS", "NVIDIA/transformer-ls", "lra")
    rng = seeded()
    drawn = []
    for index in range(MODELS):
        config = draw_config(rng)
        model, tensors = build(config)
        write_model(tmp_path / f"model-{index}", config, tensors)
        drawn.append((config, model))
    with serve(tmp_path) as server, torch.no_grad():
        for index, (config, model) in enumerate(drawn):
            pair = "Pair" in config["architectures"][0]
            for _ in range(REQUESTS):
                documents = draw_documents(rng, config, pair)
                names = ("input_ids", "input_ids_pair")
                given = {name: numpy.array([ids]) for name, ids in zip(names, documents)}
                got = infer(server, f"model-{index}", given, ["logits"])
                assert_same(got["logits"],
                            theirs(config, model, documents).numpy(),
                            f"model {index}, {documents}: {config}")
