"""The Composite Slice Transformer (Lee et al. 2023, section 3): pre-norm, slices of 16 tokens without
extension, one set of projections for both scales."""

import pathlib
import sys

import torch
from torch.nn import functional as F

import parts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "convert"))
from cst import expected_shapes as shapes  # noqa: E402, F401

FIRST_SYMBOL = 1  # Symbol i has id 1 + i; 0 is padding.
PAD = 0


def around(task):
    """Ids before and after a document."""
    return (), ()


def config(task, size):
    return {"model_type": "cst", "architectures": ["CSTForSequenceClassification"],
            "head": "lra_classifier", "vocab_size": task.symbols + 2, "hidden_size": size.width,
            "num_hidden_layers": size.layers, "num_attention_heads": size.heads,
            "intermediate_size": size.ffn, "classifier_hidden_size": size.ffn,
            "max_position_embeddings": task.longest, "slice_length": 16,
            "num_labels": len(task.labels), "id2label": task.id2label()}


def attention(given, t, name, x, positions, seen):
    """Rows of x [..., n, d] over each other; `seen` [..., n]."""
    heads = given["num_attention_heads"]
    placed = x + positions
    q, k, v = (parts.split_heads(t.dense(name + part, rows), heads)
               for part, rows in (("query", placed), ("key", placed), ("value", x)))
    return parts.join_heads(parts.attend(q, k, v, seen[..., None, None, :]))


def composite(given, t, layer, x, real):
    length, name = given["slice_length"], layer + "attention.self."
    slices, counted = x.unflatten(1, (-1, length)), real.unflatten(1, (-1, length))
    local = attention(given, t, name, slices, t["cst.ms_vipe.local_embeddings.weight"], counted)
    weights = counted[..., None].to(x.dtype)
    pooled = (local * weights).sum(2) / weights.sum(2).clamp(min=1)
    table = t["cst.ms_vipe.global_embeddings.weight"][:pooled.shape[1]]
    over = attention(given, t, name, pooled, table, counted.any(-1))
    return t.dense(layer + "attention.output.dense", (local + over[:, :, None]).flatten(1, 2))


def logits(given, t, ids, real):
    ids, real = (parts.pad_to(x, given["slice_length"]) for x in (ids, real))
    x = t["cst.embeddings.word_embeddings.weight"][ids]
    for i in range(given["num_hidden_layers"]):
        layer = f"cst.encoder.layer.{i}."
        x = x + composite(given, t, layer, t.norm(layer + "attention.output.LayerNorm", x), real)
        y = F.gelu(t.dense(layer + "intermediate.dense", t.norm(layer + "output.LayerNorm", x)))
        x = x + t.dense(layer + "output.dense", y)
    document = parts.mean(t.norm("cst.encoder.LayerNorm", x), real)
    return t.dense("classifier.out_proj", torch.relu(t.dense("classifier.dense", document)))
