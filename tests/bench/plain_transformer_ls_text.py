"""The Transformer-LS text classifier written plainly in PyTorch, from the paper's formulas (Zhu et al.
2021, sections 3.2 to 3.4, class vector in the last layer or the mean), and a directory of random weights."""

import torch
from torch.nn import functional as F

from plain_parts import PlainModel, RandomTensors, shape_of
from tables import encoders


def config(arguments):
    return encoders.transformer_ls(shape_of(arguments))


def weights(given, generator):
    """name -> random tensor, by the names of the published checkpoints."""
    d, ff, columns = given["d"], given["ff"], given["heads"] * given["rank"]
    tensors = RandomTensors(d, generator)
    tensors.normal("model.embeddings.word_embeddings.weight", given["vocab_size"], d, scale=1)
    tensors.normal("model.embeddings.position_embeddings.weight", given["max_seq_len"], d, scale=1)
    tensors.normal("model.cls_embed", 1, 1, d, scale=1)
    for i in range(given["layers"]):
        layer = f"model.transformer_{i}."
        for part in ("norm1", "norm2", "mha.dual_ln_s", "mha.dual_ln_l"):
            tensors.norm(layer + part)
        for part in ("W_q", "W_k", "W_v", "W_o"):
            tensors.dense(f"{layer}mha.{part}", d, d)
        tensors.dense(layer + "mha.dconv_fc", columns, d)
        tensors.dense(layer + "mlpblock.0", ff, d)
        tensors.dense(layer + "mlpblock.3", d, ff)
    tensors.norm("model.norm")
    tensors.dense("seq_classifer.mlpblock.0", ff, d)
    tensors.dense("seq_classifer.mlpblock.2", given["num_labels"], ff)
    return tensors


class Plain(PlainModel):
    def heads(self, x):
        return x.view(x.shape[0], self.given["heads"], -1).transpose(0, 1)

    def windows(self, x, fill):
        """[h, n, c] -> [h, groups, c, keys of a group's window]."""
        w = self.given["window"]
        e = max(w // 2, 1)
        return F.pad(x, (0, 0, e, e), value=fill).unfold(1, w + 2 * e, w)

    def attention(self, layer, y, vector):
        """Contexts of the tokens [n, d], and of the class vector [1, d] if there is one."""
        h, w, n = self.given["heads"], self.given["window"], y.shape[0]
        name = layer + "mha."
        q = self.heads(self.dense(name + "W_q", y)) * (y.shape[1] // h) ** -0.5
        k = self.norm(name + "dual_ln_l", self.dense(name + "W_k", y))
        v = self.norm(name + "dual_ln_l", self.dense(name + "W_v", y))
        scores = torch.softmax(self.dense(name + "dconv_fc", y), dim=0)
        p = scores.view(n, h, -1).permute(1, 2, 0)  # [h, r, n]
        compressed = []
        for x, part in ((k, "W_k"), (v, "W_v")):
            rows = (p @ self.heads(x)).transpose(0, 1).reshape(-1, y.shape[1])
            if vector is not None:
                rows = torch.cat([self.dense(name + part, vector), rows])
            compressed.append(self.heads(self.norm(name + "dual_ln_s", rows)))
        keys, values = compressed
        k, v = self.heads(k), self.heads(v)
        real = torch.ones(1, n, 1)
        local = q.view(h, n // w, w, -1) @ self.windows(k, 0.0)
        local = local.masked_fill(self.windows(real, 0.0) == 0, float("-inf")).view(h, n, -1)
        weights_ = torch.softmax(torch.cat([q @ keys.transpose(1, 2), local], -1), -1)
        long, near = weights_.split([keys.shape[1], local.shape[-1]], -1)
        near = near.view(h, n // w, w, -1) @ self.windows(v, 0.0).transpose(2, 3)
        context = long @ values + near.reshape(h, n, -1)
        tokens = context.transpose(0, 1).reshape(n, -1)
        if vector is None:
            return tokens, None
        own_q = self.heads(self.dense(name + "W_q", vector)) * (y.shape[1] // h) ** -0.5
        own_k = torch.cat([self.heads(self.dense(name + "W_k", vector)), context], 1)
        own_v = torch.cat([self.heads(self.dense(name + "W_v", vector)), context], 1)
        own = torch.softmax(own_q @ own_k.transpose(1, 2), -1) @ own_v
        return tokens, own.transpose(0, 1).reshape(1, -1)

    def tail(self, layer, x, z):
        x = x + self.dense(layer + "mha.W_o", z)
        hidden = F.gelu(self.dense(layer + "mlpblock.0", self.norm(layer + "norm2", x)))
        return x + self.dense(layer + "mlpblock.3", hidden)

    def __call__(self, ids):
        """Logits [1, labels] of one document, whose length is a multiple of the window."""
        t = self.tensors
        x = t["model.embeddings.word_embeddings.weight"][ids]
        x = x + t["model.embeddings.position_embeddings.weight"][:len(ids)]
        for i in range(self.given["layers"]):
            layer = f"model.transformer_{i}."
            last = i + 1 == self.given["layers"] and self.given.get("cls_mode") != "none"
            vector = t["model.cls_embed"][0] if last else None
            tokens, own = self.attention(layer, self.norm(layer + "norm1", x), vector)
            x = self.tail(layer, vector if last else x, own if last else tokens)
        z = self.norm("model.norm", x).mean(0, keepdim=True)  # Of the class vector's one row, or of all tokens.
        return self.dense("seq_classifer.mlpblock.2",
                          F.relu(self.dense("seq_classifer.mlpblock.0", z)))
