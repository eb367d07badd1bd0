"""Longformer's classifier written plainly in PyTorch: windows as a loop over their offsets, the form that the article
calls slow, which takes dilated heads as they are (Beltagy et al. 2020, section 3). The first token is global."""

import torch
from torch.nn import functional as F

from plain_parts import PlainModel

PREFIX = "longformer."


class Plain(PlainModel):
    def heads(self, name, x):
        """[heads, n, channels]"""
        return self.dense(name, x).view(x.shape[0], self.given["num_attention_heads"], -1).transpose(0, 1)

    def band(self, q, k, v, first_k, first_v, side, dilation):
        """Attention of heads with this dilation to `side` tokens on both sides and to the first token."""
        n, reach = q.shape[1], side * dilation
        keys, values = (F.pad(x, (0, 0, reach, reach)) for x in (k, v))
        offsets = range(0, 2 * reach + 1, dilation)
        place = torch.arange(n)
        scores = []
        for offset in offsets:
            seen = place + offset - reach
            score = (q * keys[:, offset:offset + n]).sum(-1)
            scores.append(score.masked_fill((seen <= 0) | (seen >= n), float("-inf")))
        weights = torch.softmax(torch.stack([(q * first_k).sum(-1), *scores], -1), -1)
        context = weights[..., :1] * first_v
        for i, offset in enumerate(offsets):
            context = context + weights[..., i + 1:i + 2] * values[:, offset:offset + n]
        return context

    def attention(self, layer, i, x):
        own = layer + "attention.self."
        q, k, v = (self.heads(own + part, x) for part in ("query", "key", "value"))
        q = q * q.shape[-1] ** -0.5
        side = self.given["attention_window"][i] // 2
        dilations = torch.tensor(self.given["attention_dilation"][i])
        context = torch.empty_like(q)
        for dilation in dilations.unique():
            of = dilations == dilation
            context[of] = self.band(q[of], k[of], v[of], k[of][:, :1], v[of][:, :1], side, int(dilation))
        q0, k0, v0 = (self.heads(own + part + "_global", rows)
                      for part, rows in (("query", x[:1]), ("key", x), ("value", x)))
        weights = torch.softmax(q0 @ k0.transpose(1, 2) * q0.shape[-1] ** -0.5, -1)
        context[:, :1] = weights @ v0
        return self.dense(layer + "attention.output.dense", context.transpose(0, 1).reshape(x.shape))

    def __call__(self, ids):
        """Logits [1, labels] of one document."""
        t = self.tensors
        x = t[PREFIX + "embeddings.word_embeddings.weight"][ids]
        first = self.given["pad_token_id"] + 1
        x = x + t[PREFIX + "embeddings.position_embeddings.weight"][first:first + len(ids)]
        x = self.norm(PREFIX + "embeddings.LayerNorm", x + t[PREFIX + "embeddings.token_type_embeddings.weight"][0])
        for i in range(self.given["num_hidden_layers"]):
            layer = f"{PREFIX}encoder.layer.{i}."
            x = self.norm(layer + "attention.output.LayerNorm", x + self.attention(layer, i, x))
            hidden = F.gelu(self.dense(layer + "intermediate.dense", x))
            x = self.norm(layer + "output.LayerNorm", x + self.dense(layer + "output.dense", hidden))
        hidden = torch.tanh(self.dense("classifier.dense", x[:1]))
        return self.dense("classifier.out_proj", hidden)
