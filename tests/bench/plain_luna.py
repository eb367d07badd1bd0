"""Luna's Long Range Arena classifier written plainly in PyTorch, from the paper's formulas (Ma et al.
2021, section 3; untied keys and values, post-norm, class token or mean), and a directory of random weights."""

import torch
from torch.nn import functional as F

from plain_parts import PlainModel, RandomTensors, shape_of
from tables import encoders

PREFIX = "encoder.encoder."


def config(arguments):
    return encoders.luna(shape_of(arguments), rows=256)


def weights(given, generator):
    """name -> random tensor, by the names of the published checkpoints."""
    d, ff = given["hidden_size"], given["ffn_size"]
    tensors = RandomTensors(d, generator)
    tensors.normal(PREFIX + "embed_tokens.weight", given["vocab_size"], d, scale=1)
    tensors.normal(PREFIX + "embed_positions.weight", given["max_positions"] + 2, d, scale=1)
    tensors.normal(PREFIX + "projected_embeddings", given["proj_len"], d, scale=1)
    tensors.norm(PREFIX + "emb_layer_norm")
    tensors.norm(PREFIX + "proj_emb_layer_norm")
    for i in range(given["num_layers"]):
        layer = f"{PREFIX}layers.{i}."
        for part in ("pq", "q", "pk", "pv", "k", "v", "out"):
            tensors.dense(f"{layer}self_attn.{part}_proj", d, d)
        for part in ("self_attn", "self_atten_proj", "final"):
            tensors.norm(f"{layer}{part}_layer_norm")
        tensors.dense(layer + "fc1", ff, d)
        tensors.dense(layer + "fc2", d, ff)
    tensors.dense("classifier.0", given["classifier_out_dim"], d)
    tensors.normal("sentence_projection_layer.weight", given["num_labels"],
                   given["classifier_out_dim"])
    return tensors


class Plain(PlainModel):
    def attention(self, query, key, value):
        """Softmax attention of rows [n, d] over rows [m, d], all heads."""
        q, k, v = (x.view(x.shape[0], self.given["num_heads"], -1).transpose(0, 1)
                   for x in (query, key, value))
        scores = torch.softmax(q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, -1)
        return (scores @ v).transpose(0, 1).reshape(query.shape)

    def layer(self, name, x, p):
        own = name + "self_attn."
        packed = self.attention(self.dense(own + "pq_proj", p), self.dense(own + "pk_proj", x),
                                self.dense(own + "pv_proj", x))
        context = self.attention(self.dense(own + "q_proj", x), self.dense(own + "k_proj", packed),
                                 self.dense(own + "v_proj", packed))
        x = self.norm(name + "self_attn_layer_norm", x + self.dense(own + "out_proj", context))
        p = self.norm(name + "self_atten_proj_layer_norm", p + packed)
        hidden = F.gelu(self.dense(name + "fc1", x))
        return self.norm(name + "final_layer_norm", x + self.dense(name + "fc2", hidden)), p

    def __call__(self, ids):
        """Logits [1, labels] of one document. P has no more rows than it has tokens."""
        t = self.tensors
        x = t[PREFIX + "embed_tokens.weight"][ids]
        # Positions of fairseq begin behind the padding's id, 1.
        x = self.norm(PREFIX + "emb_layer_norm",
                      x + t[PREFIX + "embed_positions.weight"][2:2 + len(ids)])
        p = self.norm(PREFIX + "proj_emb_layer_norm", t[PREFIX + "projected_embeddings"][:len(ids)])
        for i in range(self.given["num_layers"]):
            x, p = self.layer(f"{PREFIX}layers.{i}.", x, p)
        pooled = x.mean(0, keepdim=True) if self.given.get("pooling") == "mean" else x[:1]
        hidden = F.relu(self.dense("classifier.0", pooled))
        return F.linear(hidden, t["sentence_projection_layer.weight"])
