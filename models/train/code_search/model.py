"""ModernBERT of a few sliding layers, a projection behind its mean: HuggingFace's parameter names.

Without its layers the model is a table of word vectors: `static` is that, exactly, and costs next to
nothing. The layers begin as no change at all, so training goes on where that stopped.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN, HEADS, INNER, LAYERS = 384, 6, 384, 1
WINDOW, THETA, EPSILON = 128, 10000.0, 1e-5
PAD, CLS, QUESTION = 0, 2, 5
# Dimensions of the table that the projection drops: there a word loses weight against others.
SILENT = 8


def rotations(length):
    frequencies = 1.0 / THETA ** (torch.arange(0, HIDDEN // HEADS, 2).float() / (HIDDEN // HEADS))
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()


def rotate(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat([-high, low], -1) * sin


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return F.layer_norm(x, (HIDDEN,), self.weight, None, EPSILON)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.Wqkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=False)
        self.Wo = nn.Linear(HIDDEN, HIDDEN, bias=False)
        nn.init.normal_(self.Wqkv.weight, std=HIDDEN ** -0.5)
        nn.init.zeros_(self.Wo.weight)

    def forward(self, x, mask, cos, sin):
        rows, length, _ = x.shape
        q, k, v = self.Wqkv(x).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, attn_mask=mask)
        return self.Wo(mixed.transpose(1, 2).reshape(rows, length, HIDDEN))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.Wi = nn.Linear(HIDDEN, 2 * INNER, bias=False)
        self.Wo = nn.Linear(INNER, HIDDEN, bias=False)
        nn.init.normal_(self.Wi.weight, std=HIDDEN ** -0.5)
        nn.init.zeros_(self.Wo.weight)

    def forward(self, x):
        up, gate = self.Wi(x).chunk(2, -1)
        return self.Wo(F.gelu(up) * gate)


class Layer(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.attn_norm = nn.Identity() if first else Norm()
        self.attn, self.mlp_norm, self.mlp = Attention(), Norm(), Mlp()

    def forward(self, x, mask, cos, sin):
        x = x + self.attn(self.attn_norm(x), mask, cos, sin)
        return x + self.mlp(self.mlp_norm(x))


class Embeddings(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tok_embeddings, self.norm = nn.Embedding(vocabulary, HIDDEN), Norm()

    def forward(self, ids):
        return self.norm(self.tok_embeddings(ids))


class Encoder(nn.Module):
    """`dense` is the module behind the pooling; the rest has the names of ModernBertModel."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embeddings, self.final_norm = Embeddings(vocabulary), Norm()
        self.layers = nn.ModuleList(Layer(i == 0) for i in range(LAYERS))
        self.dense = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.scale = nn.Parameter(torch.tensor(math.log(20.0)))
        self.register_buffer("rotations", torch.stack(rotations(512)), persistent=False)

    @torch.no_grad()
    def begin_with(self, rarity):
        """Random directions, as long as the word is rare (`rarity` of each id, 0 to 1); the rest of
        the norm lies in dimensions that `dense` drops."""
        table = self.embeddings.tok_embeddings.weight
        loud = F.normalize(torch.randn(len(table), HIDDEN - SILENT), dim=1) * rarity[:, None]
        silent = (1 - rarity[:, None] ** 2).sqrt() / SILENT ** 0.5
        signs = torch.tensor([1.0, -1.0]).repeat(SILENT // 2)  # Nothing for the norm to subtract.
        table.copy_(torch.cat([loud, silent * signs], 1) * HIDDEN ** 0.5)
        self.dense.weight.copy_(torch.diag((torch.arange(HIDDEN) < HIDDEN - SILENT).float()))

    def static(self, ids, begins):
        """The vectors of rows of ids, one behind another, beginning at `begins`; no layers."""
        table = self.final_norm(self.embeddings.norm(self.embeddings.tok_embeddings.weight))
        return F.normalize(self.dense(F.embedding_bag(ids, table, begins, mode="mean")), dim=1)

    def forward(self, ids, lengths, pooled):
        """ids [rows, length]; `pooled` [rows, length] is 1 where a token counts for the vector."""
        length = ids.shape[1]
        places = torch.arange(length)
        near = (places[:, None] - places[None, :]).abs() <= WINDOW // 2
        mask = near[None] & (places[None, None, :] < lengths[:, None, None])
        # A padding row sees itself: a softmax over nothing is not a number.
        mask = (mask | torch.eye(length, dtype=torch.bool)[None])[:, None]
        cos, sin = self.rotations[:, :length]
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x, mask, cos, sin)
        x = self.final_norm(x)
        mean = (x * pooled[..., None]).sum(1) / pooled.sum(1, keepdim=True)
        return F.normalize(self.dense(mean), dim=1)
