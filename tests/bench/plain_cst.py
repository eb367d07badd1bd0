"""The Composite Slice classifier written plainly in PyTorch, from the paper's formulas (Lee et al. 2023,
section 3: slices without extension, shared projections, multi-scale positions), and a directory of
random weights."""

import torch
from torch.nn import functional as F

from plain_parts import PlainModel, RandomTensors, shape_of
from tables import encoders


def config(arguments):
    return encoders.cst(shape_of(arguments), slice_length=16)


def weights(given, generator):
    """name -> random tensor, by the names of the server's format."""
    d, ff = given["hidden_size"], given["intermediate_size"]
    length = given["slice_length"]
    slices = -(-given["max_position_embeddings"] // length)
    tensors = RandomTensors(d, generator)
    tensors.normal("cst.embeddings.word_embeddings.weight", given["vocab_size"], d, scale=1)
    tensors.normal("cst.ms_vipe.local_embeddings.weight", length, d, scale=0.3)
    tensors.normal("cst.ms_vipe.global_embeddings.weight", slices, d, scale=0.3)
    for i in range(given["num_hidden_layers"]):
        layer = f"cst.encoder.layer.{i}."
        for part in ("query", "key", "value"):
            tensors.dense(f"{layer}attention.self.{part}", d, d)
        tensors.dense(layer + "attention.output.dense", d, d)
        tensors.norm(layer + "attention.output.LayerNorm")
        tensors.dense(layer + "intermediate.dense", ff, d)
        tensors.dense(layer + "output.dense", d, ff)
        tensors.norm(layer + "output.LayerNorm")
    tensors.norm("cst.encoder.LayerNorm")
    tensors.dense("classifier.dense", ff, d)
    tensors.dense("classifier.out_proj", given["num_labels"], ff)
    return tensors


class Plain(PlainModel):
    def attention(self, name, x, positions):
        """Every row of x [batch, n, d] over the rows of its batch; positions [n, d] or less."""
        batch, n, d = x.shape
        heads = self.given["num_attention_heads"]

        def split(y):
            return y.view(batch, n, heads, d // heads).transpose(1, 2)

        placed = x + positions[:n]
        q, k = split(self.dense(name + "query", placed)), split(self.dense(name + "key", placed))
        scores = q @ k.transpose(2, 3) / (d // heads) ** 0.5
        context = torch.softmax(scores, -1) @ split(self.dense(name + "value", x))
        return context.transpose(1, 2).reshape(batch, n, d)

    def composite(self, layer, x):
        tables = "cst.ms_vipe."
        name = layer + "attention.self."
        local = self.attention(name, x.view(-1, self.given["slice_length"], x.shape[1]),
                               self.tensors[tables + "local_embeddings.weight"])
        over = self.attention(name, local.mean(1)[None],
                              self.tensors[tables + "global_embeddings.weight"])
        return self.dense(layer + "attention.output.dense",
                          (local + over[0][:, None]).view_as(x))

    def __call__(self, ids):
        """Logits [1, labels] of one document, whose length is a multiple of the slice."""
        x = self.tensors["cst.embeddings.word_embeddings.weight"][ids]
        for i in range(self.given["num_hidden_layers"]):
            layer = f"cst.encoder.layer.{i}."
            x = x + self.composite(layer, self.norm(layer + "attention.output.LayerNorm", x))
            y = self.norm(layer + "output.LayerNorm", x)
            x = x + self.dense(layer + "output.dense",
                               F.gelu(self.dense(layer + "intermediate.dense", y)))
        z = self.norm("cst.encoder.LayerNorm", x).mean(0, keepdim=True)
        return self.dense("classifier.out_proj", F.relu(self.dense("classifier.dense", z)))
