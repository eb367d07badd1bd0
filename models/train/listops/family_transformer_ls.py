"""Transformer-LS for text (Zhu et al. 2021, sections 3.2 to 3.4): pre-norm, windows of 16 and a dynamic
projection of 16 rows per head, the mean over the tokens for the document."""

import pathlib
import sys

import torch
from torch.nn import functional as F

import parts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "convert"))
from transformer_ls_text import expected_shapes as shapes  # noqa: E402, F401

FIRST_SYMBOL = 1  # Symbol i has id 1 + i; 0 is padding, which masks.
PAD = 0


def around(task):
    """Ids before and after a document."""
    return (), ()


def config(task, size):
    return {"model_type": "transformer_ls",
            "architectures": ["TransformerLSForSequenceClassification"],
            "vocab_size": task.symbols + 2, "d": size.width, "heads": size.heads,
            "layers": size.layers, "ff": size.ffn, "max_seq_len": task.longest, "window": 16,
            "rank": 16, "cls_mode": "none", "tied_weights": False,
            "num_labels": len(task.labels), "id2label": task.id2label()}


def attention(given, t, name, y, real):
    heads, window = given["heads"], given["window"]
    reach = window // 2
    q = parts.split_heads(t.dense(name + "W_q", y), heads)
    k = t.norm(name + "dual_ln_l", t.dense(name + "W_k", y))
    v = t.norm(name + "dual_ln_l", t.dense(name + "W_v", y))
    scores = t.dense(name + "dconv_fc", y).unflatten(-1, (heads, -1)).permute(0, 2, 3, 1)
    p = torch.softmax(scores.masked_fill(~real[:, None, None], -1e9), -1)  # [B, h, r, T]
    rows = [t.norm(name + "dual_ln_s", parts.join_heads(p @ parts.split_heads(x, heads)))
            for x in (k, v)]
    far_k, far_v = (parts.split_heads(x, heads)[:, :, None] for x in rows)
    near_k, near_v = (parts.neighbours(parts.split_heads(x, heads), window, reach)
                      for x in (k, v))
    groups = near_k.shape[2]
    far_k, far_v = (x.expand(-1, -1, groups, -1, -1) for x in (far_k, far_v))
    seen = parts.neighbours(real[..., None].to(y.dtype), window, reach)[..., 0] > 0
    seen = torch.cat([torch.ones_like(seen[..., :1]).expand(-1, -1, far_k.shape[3]), seen], -1)
    z = parts.attend(q.unflatten(2, (groups, window)), torch.cat([far_k, near_k], 3),
                     torch.cat([far_v, near_v], 3), seen[:, None, :, None])
    return t.dense(name + "W_o", parts.join_heads(z.flatten(2, 3)))


def logits(given, t, ids, real):
    ids, real = (parts.pad_to(x, given["window"]) for x in (ids, real))
    x = t["model.embeddings.word_embeddings.weight"][ids]
    table = t["model.embeddings.position_embeddings.weight"]
    x = x + table[torch.arange(ids.shape[1]).clamp(max=len(table) - 1)]
    for i in range(given["layers"]):
        layer = f"model.transformer_{i}."
        x = x + attention(given, t, layer + "mha.", t.norm(layer + "norm1", x), real)
        y = F.gelu(t.dense(layer + "mlpblock.0", t.norm(layer + "norm2", x)))
        x = x + t.dense(layer + "mlpblock.3", y)
    document = parts.mean(t.norm("model.norm", x), real)
    hidden = torch.relu(t.dense("seq_classifer.mlpblock.0", document))
    return t.dense("seq_classifer.mlpblock.2", hidden)
