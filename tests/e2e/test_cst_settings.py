"""The Composite Slice Transformer with random weights and configurations beside defined_cst.py, drawn
anew in every run (slow; needs torch). Nobody published code of this family. LONGVIEW_SEED repeats a
run."""


import numpy
import pytest
from drawn_models import assert_same, infer, seeded, serve, write_model

torch = pytest.importorskip("torch")

from defined_cst import PlainCst, local_rows  # noqa: E402

pytestmark = pytest.mark.slow

MODELS = 40
REQUESTS = 3  # Of each model.
ARCHITECTURES = {"masked_lm": "CSTForMaskedLM", "causal_lm": "CSTForCausalLM"}


def draw_config(rng):
    head = rng.choice(["lra_classifier", "lra_classifier", "lra_matching",
                       "sequence_classification", "masked_lm", "causal_lm", "causal_lm"])
    causal = head == "causal_lm"
    length, reach = rng.choice([1, 2, 3, 4, 6, 8, 16]), 0
    mixer = "mlp" if not causal and rng.random() < 0.15 else "attention"
    if mixer == "attention":
        reach = rng.choice([0, rng.randrange(length + 1), length])
    heads = rng.choice([1, 2, 3, 4])
    width = heads * rng.choice([2, 4, 5, 8, 16])
    adaptive = causal and rng.random() < 0.25
    own_width = head != "lra_classifier" or adaptive or rng.random() < 0.7
    norm = rng.choice(["pre", "post"])
    config = {
        "model_type": "cst", "architectures": [ARCHITECTURES.get(
            head, "CSTForSequenceClassification")],
        "head": head, "is_decoder": causal, "vocab_size": 40, "hidden_size": width,
        "embedding_size": width if own_width else 6, "num_hidden_layers": rng.choice([1, 2, 3]),
        "num_attention_heads": heads, "intermediate_size": rng.choice([7, 32]),
        "hidden_act": rng.choice(["gelu", "gelu_tanh", "relu"]),
        "layer_norm_eps": rng.choice([1e-5, 1e-12, 1e-2]),
        "max_position_embeddings": rng.choice([20, 47, 64]), "slice_length": length,
        "extension_ratio": 1 + 2 * reach / length, "share_local_global": rng.random() < 0.6,
        "attention_output_projection": rng.random() < 0.7, "attention_bias": rng.random() < 0.6,
        "position_embedding": rng.choice(["ms_vipe", "ms_vipe", "conventional", "none"]),
        "ms_vipe_shared_across_layers": rng.random() < 0.6,
        "local_position_extension": rng.choice(["learned", "tiled"]),
        "ext_boundary": rng.choice(["mask", "zero"]), "mask_empty_slices": rng.random() < 0.7,
        "first_slice_global": "zero",
        "global_query_shift": rng.choice(["projected", "embedding"]),
        "slice_pooling": rng.choice(["mean", "mean", "max", "linear"]),
        "msmra_order": rng.choice(["composition", "composition", "parallel", "global_first"]),
        "local_mixer": mixer, "norm_position": norm,
        "final_layer_norm": rng.choice([norm == "pre", rng.random() < 0.5]),
        "embedding_layer_norm": rng.random() < 0.4, "embedding_scale": rng.choice([1, 2.5]),
        "type_vocab_size": rng.choice([0, 0, 2]) if not causal else 0,
        "pad_mask_source": "length" if causal else rng.choice(["length", "nonzero_id"]),
        "pooling": rng.choice(["mean", "mean_padded"]), "num_labels": rng.choice([1, 2, 5]),
        "classifier_hidden_size": rng.choice([7, 16]),
        "pair_interaction": rng.choice(["nli", "concat"]),
        "pooler": rng.choice(["dense_tanh", "none"]),
        "tie_word_embeddings": adaptive or rng.random() < 0.6,
        "lm_head": "adaptive" if adaptive else "tied", "lm_head_bias": rng.random() < 0.5,
        "adaptive_cutoffs": rng.choice([[10], [10, 20, 30]])}
    if mixer == "mlp":
        config["local_mixer_size"] = rng.choice([3, 9])
    return config


def shapes(config):
    """name -> shape of every tensor of a checkpoint."""
    c, names = config, {}
    d, own, ff, length = (c["hidden_size"], c["embedding_size"], c["intermediate_size"],
                          c["slice_length"])
    slices = -(-c["max_position_embeddings"] // length)
    mlp = c["local_mixer"] == "mlp"

    def dense(name, out, into, bias=True):
        names[name + ".weight"] = (out, into)
        if bias:
            names[name + ".bias"] = (out,)

    def norm(name, width=d):
        names[name + ".weight"] = names[name + ".bias"] = (width,)

    def positions(place):
        if not mlp:
            names[place + "ms_vipe.local_embeddings.weight"] = (local_rows(c), d)
        names[place + "ms_vipe.global_embeddings.weight"] = (slices, d)

    names["cst.embeddings.word_embeddings.weight"] = (c["vocab_size"], own)
    if c["type_vocab_size"] > 0:
        names["cst.embeddings.token_type_embeddings.weight"] = (c["type_vocab_size"], own)
    if c["position_embedding"] == "conventional":
        names["cst.embeddings.position_embeddings.weight"] = (c["max_position_embeddings"], own)
    if c["embedding_layer_norm"]:
        norm("cst.embeddings.LayerNorm", own)
    if own != d:
        dense("cst.embeddings_project", d, own)
    shared = c["ms_vipe_shared_across_layers"]
    if c["position_embedding"] == "ms_vipe" and shared:
        positions("cst.")
    for i in range(c["num_hidden_layers"]):
        layer = f"cst.encoder.layer.{i}."
        attention = layer + "attention.self."
        if c["position_embedding"] == "ms_vipe" and not shared:
            positions(attention)
        for part in ("query", "key", "value"):
            if c["share_local_global"] or not mlp:
                dense(attention + part, d, d, c["attention_bias"])
            if not c["share_local_global"]:
                dense(attention + part + "_global", d, d, c["attention_bias"])
        if c["slice_pooling"] == "linear":
            names[attention + "slice_pooling.weight"] = (d, d, length)
            names[attention + "slice_pooling.bias"] = (d,)
        if mlp:
            dense(attention + "local_mixer.dense_in", c["local_mixer_size"], length)
            dense(attention + "local_mixer.dense_out", length, c["local_mixer_size"])
        if c["attention_output_projection"]:
            dense(layer + "attention.output.dense", d, d, c["attention_bias"])
        norm(layer + "attention.output.LayerNorm")
        dense(layer + "intermediate.dense", ff, d)
        dense(layer + "output.dense", d, ff)
        norm(layer + "output.LayerNorm")
    if c["final_layer_norm"]:
        norm("cst.encoder.LayerNorm")
    add_head(config, names, dense, norm)
    return names


def add_head(c, names, dense, norm):
    head, d, own, labels = c["head"], c["hidden_size"], c["embedding_size"], c["num_labels"]
    if head == "masked_lm":
        dense("cls.predictions.transform.dense", own, d)
        norm("cls.predictions.transform.LayerNorm", own)
        names["cls.predictions.bias"] = (c["vocab_size"],)
        if not c["tie_word_embeddings"]:
            names["cls.predictions.decoder.weight"] = (c["vocab_size"], own)
    elif head == "causal_lm":
        if not c["tie_word_embeddings"]:
            names["lm_head.weight"] = (c["vocab_size"], d)
        if c["lm_head"] == "adaptive":
            dense("lm_head.cluster", len(c["adaptive_cutoffs"]), d)
            for part in ("weight", "bias"):
                names[f"lm_head.cluster_{part}"] = names.pop(f"lm_head.cluster.{part}")
        if c["lm_head"] == "adaptive" or c["lm_head_bias"]:
            names["lm_head.bias"] = (c["vocab_size"],)
    elif head == "sequence_classification":
        if c["pooler"] != "none":
            dense("cst.pooler.dense", d, d)
        dense("classifier", labels, d)
    else:
        rows = 1 if head == "lra_classifier" else 4 if c["pair_interaction"] == "nli" else 2
        dense("classifier.dense", c["classifier_hidden_size"], rows * d)
        dense("classifier.out_proj", labels, c["classifier_hidden_size"])


def draw_tensors(config):
    tensors = {}
    for name, shape in shapes(config).items():
        fan = torch.tensor(shape[1:]).prod().item() if len(shape) > 1 else 1
        spread = 1.0 if "embeddings" in name else 1.2 * fan ** -0.5 if len(shape) > 1 else 0.2
        tensors[name] = spread * torch.randn(shape)
        if "LayerNorm.weight" in name:
            tensors[name] += 1
    return tensors


def draw_request(rng, config):
    """The tensors of one item."""
    names = ["input_ids", "input_ids_pair"] if config["head"] == "lra_matching" else ["input_ids"]
    given = {}
    for name in names:
        most = config["max_position_embeddings"]
        length = rng.choice([1, 2, config["slice_length"], config["slice_length"] + 1, 19, most])
        ids = [rng.randrange(1, config["vocab_size"]) for _ in range(min(length, most))]
        for hole in rng.sample(range(len(ids)), rng.choice([0, 0, len(ids) // 2])):
            ids[hole] = 0
        ids[-1] = ids[-1] or 3
        given[name] = numpy.array([ids])
    if config["type_vocab_size"] > 0 and len(names) == 1 and rng.random() < 0.5:
        given["token_type_ids"] = numpy.array([[rng.randrange(2) for _ in given["input_ids"][0]]])
    return given


def test_configurations_as_defined(tmp_path):
    rng = seeded()
    drawn = []
    for index in range(MODELS):
        config = draw_config(rng)
        tensors = draw_tensors(config)
        write_model(tmp_path / f"model-{index}", config, tensors)
        drawn.append((config, PlainCst(config, tensors)))
    with serve(tmp_path) as server, torch.no_grad():
        for index, (config, model) in enumerate(drawn):
            for _ in range(REQUESTS):
                given = draw_request(rng, config)
                rows = {name: torch.tensor(value[0]) for name, value in given.items()}
                wanted = model.logits(rows["input_ids"], rows.get("input_ids_pair"),
                                      rows.get("token_type_ids"))[None]
                parameters = {"max_tokens": 0} if config["is_decoder"] else {}
                got = infer(server, f"model-{index}", given, ["logits"], parameters)
                assert_same(got["logits"], wanted.numpy(), f"model {index}, {given}: {config}")
