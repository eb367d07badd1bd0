"""model.py's forward pass as one plain dot-product attention, for training in bf16.

A relative score (q + b) R(i - j), R a linear map of sines and cosines of i - j, splits by the sum
formulas into features of i times features of j. So content, position and all biases are one dot
product, the window and the segments before it are one list of keys under a fixed mask, and no
scores have to be shifted. A subset of the frequencies is used: the other columns of r_net and
r_net_chunk stay zero. Exact while a text has at most `cpos_clamp_len` segments.
"""
import math

import torch
import torch.nn.functional as F

NEAR, FAR = 24, 7  # frequencies of the window's distances and of the segments'
SLOWEST = {NEAR: 1 / 100, FAR: 1 / 60}
HIDDEN = -30000.0


def _frequencies(inv_freq, count):
    """Indices of up to `count` frequencies, evenly spread over those not below SLOWEST[count]."""
    usable = int((inv_freq >= SLOWEST[count]).sum())
    return torch.linspace(0, usable - 1, count).round().long().unique()


def silence(model):
    """Zeroes the columns of the frequencies that are not used; the others keep the scores' size."""
    half = model.config.d_model // 2
    for layer in model.layers:
        for net, count in ((layer.attn.r_net, NEAR), (layer.attn.r_net_chunk, FAR)):
            used = _frequencies(model.inv_freq, count)
            keep = torch.zeros(2 * half)
            keep[used] = keep[used + half] = 1
            net.weight.data *= keep * (half / len(used)) ** 0.5
    return model


class Plan:
    """What does not depend on the weights.

    A query has, after its own d / h numbers, `width` features: two of each frequency of the window
    and of the segments, the score of a segment whatever its distance, and 1, whose partner in the
    keys of the window is a key's own score.
    """

    def __init__(self, config, inv_freq):
        self.config, half = config, config.d_model // 2
        picks = [_frequencies(inv_freq, count) for count in (NEAR, FAR)]
        self.columns = [torch.cat([pick, pick + half]) for pick in picks]
        self.swapped = [torch.cat([pick + half, pick]) for pick in picks]
        self.near, self.far = (inv_freq[pick].cpu() for pick in picks)
        self.frames = {}

    def frame(self, n, x):
        """(sines, cosines) of the queries, features of keys and entries, mask; for n tokens."""
        key = (n, x.dtype, x.device)
        if key not in self.frames:
            self.frames[key] = [t.to(x.device, x.dtype) for t in self._frame(n)]
        return self.frames[key]

    def _frame(self, n):
        w, c = self.config.window_len, self.config.chunk_size
        token, entry = torch.arange(n), torch.arange(n // c - 1)
        near, far = token[:, None] * self.near, (token // c - 1)[:, None] * self.far
        one, zero = torch.ones(n, 1), torch.zeros(n, 1)
        sines = torch.cat([near.sin(), near.sin(), far.sin(), far.sin(), one, one], 1)
        cosines = torch.cat([near.cos(), -near.cos(), far.cos(), -far.cos(), zero, zero], 1)
        unused = torch.zeros(n, 2 * len(self.far) + 1)
        keys = torch.cat([near.cos(), near.sin(), unused], 1)  # and a key's own score
        far = entry[:, None] * self.far
        entries = torch.cat([torch.zeros(len(entry), 2 * len(self.near)), far.cos(), far.sin(),
                             torch.ones(len(entry), 1), torch.zeros(len(entry), 1)], 1)
        i, j = torch.arange(w, 2 * w)[:, None], torch.arange(2 * w)
        first = torch.arange(n // w)[:, None, None] == 0
        band = (i - j >= 0) & (i - j < w) & ((j >= w) | ~first)
        finished = entry < (token // c).unflatten(0, (-1, w))[..., None]
        return sines, cosines, keys, entries, torch.where(torch.cat([band, finished], -1), 0.0, HIDDEN)


def _query_map(attn, plan):
    """Weight and bias of the layer from x to every head's query, coefficients of sines, of cosines."""
    heads = plan.config.n_head
    near, far = attn.r_net.weight, attn.r_net_chunk.weight
    none = near.new_zeros(len(near), 1)
    maps = torch.cat([near[:, plan.columns[0]], far[:, plan.columns[1]], attn.r_net_chunk.bias[:, None],
                      none, near[:, plan.swapped[0]], far[:, plan.swapped[1]], none, none], 1)
    maps = maps.unflatten(0, (heads, -1))
    query = (attn.proj_query.weight / math.sqrt(maps.shape[1])).unflatten(0, (heads, -1))
    weight = torch.cat([query, torch.matmul(maps.mT, query)], 1)
    offset = torch.matmul(attn.r_r_bias[0], maps)[:, 0]
    a, b = 2 * len(plan.near), 2 * len(plan.far)
    sizes = [a, b + 1, 1, a, b + 2]
    parts = offset.split(sizes, 1)
    bias = torch.cat([offset.new_zeros(heads, query.shape[1]), parts[0], torch.zeros_like(parts[1]),
                      torch.ones_like(parts[2]), parts[3], torch.zeros_like(parts[4])], 1)
    return weight.flatten(0, 1), bias.flatten()


class _Joined(torch.autograd.Function):
    """[B, h, n / w, 2 w + E, d]: each block's rows of `near`, the block's before, all rows of `far`."""

    @staticmethod
    def forward(ctx, near, far, w):
        ctx.w, blocks = w, near.unflatten(2, (-1, w))
        out = near.new_empty(*blocks.shape[:3], 2 * w + far.shape[2], near.shape[-1])
        out[:, :, 0, :w] = 0
        out[:, :, 1:, :w] = blocks[:, :, :-1]
        out[:, :, :, w:2 * w] = blocks
        out[:, :, :, 2 * w:] = far[:, :, None]
        return out

    @staticmethod
    def backward(ctx, grad):
        near = grad[:, :, :, ctx.w:2 * ctx.w].clone()
        near[:, :, :-1] += grad[:, :, 1:, :ctx.w]
        return near.flatten(2, 3), grad[:, :, :, 2 * ctx.w:].sum(2), None


def attend(attn, plan, x):
    """Attention.forward with far=True."""
    config = plan.config
    w, c, heads = config.window_len, config.chunk_size, config.n_head
    batch, n, width = x.shape
    dh = width // heads
    sines, cosines, key_features, entry_features, mask = plan.frame(n, x)
    features = sines.shape[1]

    def by_head(t):
        return t.unflatten(-1, (heads, -1)).transpose(1, 2)

    own, at_sines, at_cosines = by_head(F.linear(x, *_query_map(attn, plan))).split(
        [dh, features, features], -1)
    queries = torch.cat([own, torch.addcmul(at_sines * sines, at_cosines, cosines)], -1)
    k, v = F.linear(x, attn.proj_key.weight), F.linear(x, attn.proj_val.weight)
    near_k, near_v = by_head(attn.dual_ln_win(k)), by_head(attn.dual_ln_win(v))
    score = torch.matmul(near_k, attn.r_w_bias[0, :, 0].mT)
    keys = torch.cat([near_k, key_features.expand(batch, heads, -1, -1), score], -1)
    shares = attn.dconv_1(x).unflatten(1, (-1, c))[:, :-1].softmax(2).permute(0, 1, 3, 2)[..., None, :]

    def projected(t):
        t = t.unflatten(1, (-1, c))[:, :-1].unflatten(-1, (heads, dh)).transpose(2, 3)
        return by_head(attn.dual_ln_dproj(torch.matmul(shares, t).flatten(2)))

    entries = torch.cat([projected(k), entry_features.expand(batch, heads, -1, -1)], -1)
    scores = torch.matmul(queries.unflatten(2, (-1, w)), _Joined.apply(keys, entries, w).mT)
    scores += mask
    out = torch.matmul(scores.softmax(-1), _Joined.apply(near_v, projected(v), w)).flatten(2, 3)
    return attn.proj_out(out.transpose(1, 2).flatten(2))


def logits(model, plan, ids):
    """model(ids) for ids [B, n], n a multiple of the window."""
    x = model.in_emb(ids) * math.sqrt(model.config.d_model)
    for layer in model.layers:
        x = layer.norm1(x)
        x = layer.norm2(x + attend(layer.attn, plan, x))
        x = x + layer.ff(x)
    return model.out_emb(x)
