"""TransformerLSForCausalLM, schedule `paper`, computed for training on a small CPU.

The autoregressive Transformer-LS of NVIDIA/transformer-ls (arXiv 2107.02192, section 3.4) with
late segments only: each token attends to the last `window_len` positions and to `chunk_rank`
projected keys and values of every finished segment of `chunk_size` positions, in one softmax.
Parameters carry the names of the published code, so a state dict is a checkpoint.
check_golden.py compares the logits with a separate implementation's.
"""
import dataclasses
import json
import math

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn

HIDDEN = float("-inf")


@dataclasses.dataclass
class Config:
    """The keys of config.json that decide the numbers; lengths in tokens."""
    vocab_size: int = 257
    d_model: int = 192
    n_head: int = 3
    d_inner: int = 768
    n_layer: int = 4
    window_len: int = 128
    chunk_size: int = 16
    chunk_rank: int = 1
    clamp_len: int = -1
    cpos_clamp_len: int = 128


def _positions(count, clamp, inv_freq):
    """[count, d] features of the distances 0, 1, ..., all beyond `clamp` (if positive) alike."""
    distance = torch.arange(count, dtype=inv_freq.dtype, device=inv_freq.device)
    if clamp > 0:
        distance = distance.clamp(max=clamp)
    angles = distance[:, None] * inv_freq
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def _band(scores):
    """[..., w, w], column m = distance w - 1 - m, to [..., w, 2 w] columns of keys.

    Key column j of query i stands for distance i + w - j; what lies outside the band is HIDDEN.
    One padded row is one element longer than a result row, which moves each row one to the right.
    """
    w = scores.shape[-1]
    flat = F.pad(scores, (1, w), value=HIDDEN).flatten(-2)
    return flat[..., :2 * w * w].unflatten(-1, (w, 2 * w))


def _staircase(scores, rank):
    """[..., S, E], column m = id E - 1 - m, to [..., S, E - rank] columns of segment entries.

    Entry e of a query in segment C has id rank C - 1 - e. Entries that are not finished get
    scores of other rows: the caller hides them.
    """
    segments, entries = scores.shape[-2:]
    return scores.flatten(-2)[..., entries:].unflatten(-1, (segments, entries - rank))


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        d, heads = config.d_model, config.n_head
        self.dconv_1 = nn.Linear(d, heads * config.chunk_rank)
        self.r_net = nn.Linear(d, d, bias=False)
        self.r_net_chunk = nn.Linear(d, d)
        self.r_r_bias = nn.Parameter(torch.zeros(1, heads, 1, d // heads))
        self.r_w_bias = nn.Parameter(torch.zeros(1, heads, 1, 1, d // heads))
        self.proj_query = nn.Linear(d, d, bias=False)
        self.proj_key = nn.Linear(d, d, bias=False)
        self.proj_val = nn.Linear(d, d, bias=False)
        self.proj_out = nn.Linear(d, d, bias=False)
        self.dual_ln_dproj = nn.LayerNorm(d)
        self.dual_ln_win = nn.LayerNorm(d)

    def heads(self, x):
        """[..., n, d] to [..., h, n, d / h]."""
        return x.unflatten(-1, (self.config.n_head, -1)).transpose(-2, -3)

    def window_scores(self, q, keys, inv_freq):
        """[B, h, n / w, w, 2 w]: keys from the block before the query's to the query's."""
        w = self.config.window_len
        q = q.unflatten(2, (-1, w))
        table = self.r_net(_positions(w, self.config.clamp_len, inv_freq).flip(0))
        distance = torch.matmul(q + self.r_r_bias[:, :, None], self.heads(table)[:, None].mT)
        scores = torch.matmul(q + self.r_w_bias, keys.mT) + _band(distance)
        scores[:, :, 0, :, :w] = HIDDEN  # nothing precedes the text
        return scores

    def segment_scores(self, q, keys, inv_freq):
        """[B, h, l, S, (S - 1) r]: query i of segment C at [i, C], entries of all but the last."""
        length, rank = self.config.chunk_size, self.config.chunk_rank
        q = q.unflatten(2, (-1, length)).transpose(2, 3).contiguous()
        segments = q.shape[3]
        entries = segments * rank
        table = self.r_net_chunk(
            _positions(entries, self.config.cpos_clamp_len, inv_freq).flip(0))
        distance = torch.matmul(q, self.heads(table)[:, None].mT)
        content = torch.matmul(q.flatten(2, 3), keys.mT).unflatten(2, (length, segments))
        finished = torch.arange(entries - rank, device=q.device) // rank < torch.arange(
            segments, device=q.device)[:, None]
        return (content + _staircase(distance, rank)).masked_fill(~finished, HIDDEN)

    def segments(self, x, keys_values):
        """[2, B, h, (S - 1) r, d / h]: projected keys and values of all segments but the last."""
        length, rank, heads = self.config.chunk_size, self.config.chunk_rank, self.config.n_head
        shares = self.dconv_1(x).unflatten(1, (-1, length)).softmax(2).unflatten(-1, (heads, rank))
        split = keys_values.unflatten(2, (-1, length)).unflatten(-1, (heads, -1))[:, :, :-1]
        entries = torch.stack([(split * shares[:, :-1, :, :, k, None]).sum(3).flatten(-2)
                               for k in range(rank)], dim=3)
        return self.heads(self.dual_ln_dproj(entries.flatten(2, 3)))

    def forward(self, x, inv_freq, far):
        """x: [B, n, d], n a multiple of window and segment length. far False: window only."""
        w = self.config.window_len
        projections = torch.cat([self.proj_query.weight, self.proj_key.weight, self.proj_val.weight])
        q, k, v = F.linear(x, projections).chunk(3, dim=-1)
        keys_values = torch.stack([k, v])
        q = self.heads(q) / math.sqrt(self.config.d_model // self.config.n_head)
        blocks = F.pad(self.heads(self.dual_ln_win(keys_values)), (0, 0, w, 0)).unflatten(3, (-1, w))
        near_keys, near_values = torch.cat([blocks[:, :, :, :-1], blocks[:, :, :, 1:]], dim=4)
        near = self.window_scores(q, near_keys, inv_freq)
        top = near.detach().amax(-1).flatten(2)
        if far and x.shape[1] > self.config.chunk_size:
            out = self.mix(near, near_values, top, q, self.segments(x, keys_values), inv_freq)
        else:
            out = torch.matmul(near.softmax(-1), near_values).flatten(2, 3)
        return self.proj_out(out.transpose(1, 2).flatten(2))

    def mix(self, near, near_values, top, q, entries, inv_freq):
        """One softmax over window and segments, whose scores lie in different orders."""
        length = self.config.chunk_size

        def by_segment(t):  # [B, h, n, ...] to [B, h, l, S, ...]
            return t.unflatten(2, (-1, length)).transpose(2, 3)

        def by_token(t):
            return t.transpose(2, 3).flatten(2, 3)

        scores = self.segment_scores(q, entries[0], inv_freq)
        top = torch.maximum(top, by_token(scores.detach().amax(-1)))
        near = (near - top.unflatten(2, near.shape[2:4])[..., None]).exp()
        scores = (scores - by_segment(top)[..., None]).exp()
        far = torch.matmul(scores.flatten(2, 3), entries[1]).unflatten(2, scores.shape[2:4])
        total = near.sum(-1).flatten(2) + by_token(scores.sum(-1))
        out = torch.matmul(near, near_values).flatten(2, 3) + by_token(far)
        return out / total[..., None]


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc1 = nn.Linear(config.d_model, config.d_inner)
        self.fc2 = nn.Linear(config.d_inner, config.d_model)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attn = Attention(config)
        self.norm1 = nn.LayerNorm(config.d_model)
        self.ff = FeedForward(config)
        self.norm2 = nn.LayerNorm(config.d_model)

    def forward(self, x, inv_freq, far):
        x = self.norm1(x)  # the residual carries the normalised state
        x = self.norm2(x + self.attn(x, inv_freq, far))
        return x + self.ff(x)


class TransformerLS(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        d = config.d_model
        self.in_emb = nn.Embedding(config.vocab_size, d)
        self.out_emb = nn.Linear(d, config.vocab_size)
        self.out_emb.weight = self.in_emb.weight
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layer))
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, d, 2) / d), persistent=False)

    def initialize(self):
        """Random weights; both branches of a layer start near zero."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                std = 0.02 if "emb" in name else parameter.shape[1] ** -0.5
                if name.endswith(("proj_out.weight", "fc2.weight")):
                    std *= 0.1
                nn.init.normal_(parameter, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        return self

    def forward(self, ids, far=True):
        """ids: [B, n] of any n; [B, n, V] logits after each token."""
        n = ids.shape[1]
        step = math.lcm(self.config.window_len, self.config.chunk_size)
        x = self.in_emb(F.pad(ids, (0, -n % step))) * math.sqrt(self.config.d_model)
        for layer in self.layers:
            x = layer(x, self.inv_freq, far)
        return self.out_emb(x[:, :n])


def load(directory):
    """The model of a directory with config.json and model.safetensors, in fp32."""
    settings = json.loads((directory / "config.json").read_text())
    names = [field.name for field in dataclasses.fields(Config)]
    model = TransformerLS(Config(**{name: settings[name] for name in names}))
    tensors = {name.removeprefix("decoder.model."): tensor.float() for name, tensor in
               safetensors.torch.load_file(directory / "model.safetensors").items()}
    if "pos_emb.inv_freq" in tensors:
        model.inv_freq = tensors.pop("pos_emb.inv_freq")
    tensors.setdefault("out_emb.weight", tensors["in_emb.weight"])
    model.load_state_dict(tensors)
    return model.eval()
