"""Luna (Ma et al. 2021) as its Long Range Arena models: post-norm, separate keys and values, 16 packed
rows, the vector of <CLS> for the document."""

import torch
from torch.nn import functional as F

import parts

FIRST_SYMBOL = 4  # Symbol i has id 4 + i, behind fairseq's <s>, <pad>, </s> and <unk>.
PAD, END = 1, 2
_ATTENTION = ("pq_proj", "q_proj", "pk_proj", "pv_proj", "k_proj", "v_proj", "out_proj")


def around(task):
    """Ids before and after a document: <CLS> is the last of all."""
    return (FIRST_SYMBOL + task.symbols,), (END,)


def config(task, size):
    return {"model_type": "luna", "architectures": ["LunaForSequenceClassification"],
            "head": "lra_classifier", "vocab_size": FIRST_SYMBOL + task.symbols + 1,
            "hidden_size": size.width, "ffn_size": size.ffn, "num_layers": size.layers,
            "num_heads": size.heads, "proj_len": 16, "tie_kv": False,
            "max_positions": task.longest + 2, "pooling": "cls",
            "classifier_in_dim": size.width, "classifier_out_dim": size.ffn,
            "cls_token_id": FIRST_SYMBOL + task.symbols, "num_labels": len(task.labels),
            "id2label": task.id2label()}


def shapes(given):
    d, ffn = given["hidden_size"], given["ffn_size"]
    root = "encoder.encoder."
    found = {root + "embed_tokens.weight": [given["vocab_size"], d],
             root + "embed_positions.weight": [given["max_positions"] + 2, d],
             root + "projected_embeddings": [given["proj_len"], d]}

    def dense(name, out, into):
        found.update({name + ".weight": [out, into], name + ".bias": [out]})

    norms = [root + "emb_layer_norm", root + "proj_emb_layer_norm"]
    for i in range(given["num_layers"]):
        layer = f"{root}layers.{i}."
        for part in _ATTENTION:
            dense(f"{layer}self_attn.{part}", d, d)
        dense(layer + "fc1", ffn, d)
        dense(layer + "fc2", d, ffn)
        norms += [layer + name for name in ("self_attn_layer_norm", "self_atten_proj_layer_norm",
                                            "final_layer_norm")]
    for name in norms:
        found.update({name + ".weight": [d], name + ".bias": [d]})
    dense("classifier.0", given["classifier_out_dim"], d)
    found["sentence_projection_layer.weight"] = [given["num_labels"], given["classifier_out_dim"]]
    return found


def attention(given, t, name, x, p, real, rows):
    """Contexts of the tokens and of the packed rows."""
    heads = given["num_heads"]

    def project(part, y):
        return parts.split_heads(t.dense(name + part, y), heads)

    packed = parts.join_heads(parts.attend(project("pq_proj", p), project("pk_proj", x),
                                           project("pv_proj", x), real[:, None, None]))
    z = parts.attend(project("q_proj", x), project("k_proj", packed), project("v_proj", packed),
                     rows[:, None, None])
    return t.dense(name + "out_proj", parts.join_heads(z)), packed


def logits(given, t, ids, real):
    root = "encoder.encoder."
    positions = PAD + real.long().cumsum(1) * real
    x = t[root + "embed_tokens.weight"][ids] + t[root + "embed_positions.weight"][positions]
    x = t.norm(root + "emb_layer_norm", x)
    p = t.norm(root + "proj_emb_layer_norm", t[root + "projected_embeddings"])
    p = p.expand(len(ids), -1, -1)
    rows = torch.arange(given["proj_len"]) < real.sum(1, keepdim=True)
    for i in range(given["num_layers"]):
        layer = f"{root}layers.{i}."
        context, packed = attention(given, t, layer + "self_attn.", x, p, real, rows)
        x = t.norm(layer + "self_attn_layer_norm", x + context)
        p = t.norm(layer + "self_atten_proj_layer_norm", p + packed)
        y = t.dense(layer + "fc2", F.gelu(t.dense(layer + "fc1", x)))
        x = t.norm(layer + "final_layer_norm", x + y)
    hidden = torch.relu(t.dense("classifier.0", x[:, 0]))
    return t.dense("sentence_projection_layer", hidden)
