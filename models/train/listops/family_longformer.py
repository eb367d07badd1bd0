"""Longformer (Beltagy et al. 2020) as HuggingFace's LongformerForSequenceClassification: post-norm, 32
tokens to either side, <s> attends to all and is seen by all and stands for the document."""

import torch
from torch.nn import functional as F

import parts

FIRST_SYMBOL = 4  # Symbol i has id 4 + i, behind <s>, <pad>, </s> and <unk>.
PAD = 1
REACH = 32


def around(task):
    """Ids before and after a document."""
    return (0,), (2,)


def config(task, size):
    labels = task.id2label()
    return {"model_type": "longformer", "architectures": ["LongformerForSequenceClassification"],
            "vocab_size": FIRST_SYMBOL + task.symbols, "hidden_size": size.width,
            "num_hidden_layers": size.layers, "num_attention_heads": size.heads,
            "intermediate_size": size.ffn, "hidden_act": "gelu",
            "attention_window": [2 * REACH] * size.layers,
            "max_position_embeddings": task.longest + 4, "type_vocab_size": 1,
            "layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
            "sep_token_id": 2, "problem_type": "single_label_classification", "id2label": labels,
            "label2id": {name: int(index) for index, name in labels.items()}}


def shapes(given):
    d, ffn = given["hidden_size"], given["intermediate_size"]
    root = "longformer."
    found = {root + "embeddings.word_embeddings.weight": [given["vocab_size"], d],
             root + "embeddings.position_embeddings.weight": [given["max_position_embeddings"], d],
             root + "embeddings.token_type_embeddings.weight": [1, d]}

    def dense(name, out, into):
        found.update({name + ".weight": [out, into], name + ".bias": [out]})

    norms = [root + "embeddings.LayerNorm"]
    for i in range(given["num_hidden_layers"]):
        layer = f"{root}encoder.layer.{i}."
        for part in ("query", "key", "value"):
            dense(f"{layer}attention.self.{part}", d, d)
            dense(f"{layer}attention.self.{part}_global", d, d)
        dense(layer + "attention.output.dense", d, d)
        dense(layer + "intermediate.dense", ffn, d)
        dense(layer + "output.dense", d, ffn)
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]
    for name in norms:
        found.update({name + ".weight": [d], name + ".bias": [d]})
    dense("classifier.dense", d, d)
    dense("classifier.out_proj", len(given["id2label"]), d)
    return found


def band(q, k, v, real):
    """Tokens [B, h, T, c] over REACH tokens to either side and token 0, which the band leaves out."""
    groups = q.shape[2] // REACH
    seen = real.clone()
    seen[:, 0] = False
    near_k, near_v = (parts.neighbours(x, REACH, REACH) for x in (k, v))
    keys = parts.neighbours(seen[..., None].to(q.dtype), REACH, REACH)[..., 0] > 0
    offset = torch.arange(3 * REACH)[None] - REACH - torch.arange(REACH)[:, None]
    keys = keys[:, None, :, None] & (offset.abs() <= REACH)  # [B, 1, groups, REACH, 3 REACH]
    first_k, first_v = (x[:, :, None, :1].expand(-1, -1, groups, -1, -1) for x in (k, v))
    keys = torch.cat([torch.ones_like(keys[..., :1]), keys], -1)
    z = parts.attend(q.unflatten(2, (groups, REACH)), torch.cat([first_k, near_k], 3),
                     torch.cat([first_v, near_v], 3), keys)
    return z.flatten(2, 3)


def attention(given, t, name, x, real):
    heads = given["num_attention_heads"]

    def project(part, y):
        return parts.split_heads(t.dense(name + part, y), heads)

    z = band(project("query", x), project("key", x), project("value", x), real)
    own = parts.attend(project("query_global", x[:, :1]), project("key_global", x),
                       project("value_global", x), real[:, None, None])
    return parts.join_heads(torch.cat([own, z[:, :, 1:]], 2))


def logits(given, t, ids, real):
    root = "longformer."
    ids = parts.pad_to(ids, REACH, PAD)
    real = parts.pad_to(real, REACH)
    positions = PAD + real.long().cumsum(1) * real
    x = (t[root + "embeddings.word_embeddings.weight"][ids]
         + t[root + "embeddings.position_embeddings.weight"][positions]
         + t[root + "embeddings.token_type_embeddings.weight"][0])
    x = t.norm(root + "embeddings.LayerNorm", x)
    for i in range(given["num_hidden_layers"]):
        layer = f"{root}encoder.layer.{i}."
        z = attention(given, t, layer + "attention.self.", x, real)
        x = t.norm(layer + "attention.output.LayerNorm",
                   x + t.dense(layer + "attention.output.dense", z))
        y = F.gelu(t.dense(layer + "intermediate.dense", x))
        x = t.norm(layer + "output.LayerNorm", x + t.dense(layer + "output.dense", y))
    return t.dense("classifier.out_proj", torch.tanh(t.dense("classifier.dense", x[:, 0])))
