"""Vision Longformer (Zhang et al. 2021) in PyTorch, for training: chunked attention with relative
positions and shared projections, on maps whose sides are multiples of the chunk, or whole maps.
Tensors have the names that the server reads."""

import re

import torch
from torch import nn
from torch.nn import functional as F

_NORM_EPS = 1e-6


def parse(arch):
    """[{key letter: number}] of the stages of an architecture string."""
    return [{a[0]: int(a[1:]) for a in re.split(",", stage)} for stage in arch.split("_")]


def _heads(x, heads):
    """[B, N, d] -> [B, h, N, M]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class _Attention(nn.Module):
    """Common part of chunked and full attention: projections, and biases as tables per head."""

    def __init__(self, d, heads, globals_, table):
        super().__init__()
        self.heads, self.globals = heads, globals_
        self.proj = nn.Linear(d, d)
        self.local_relative_position_bias_table = nn.Parameter(torch.zeros(table, heads))
        if globals_:
            self.g2l_relative_position_bias = nn.Parameter(torch.zeros(2, heads, globals_))
            self.g2g_relative_position_bias = nn.Parameter(torch.zeros(heads, globals_, globals_))

    def global_bias(self, local):
        """[h, g, g + local]: rows of the global tokens."""
        to_local = self.g2l_relative_position_bias[0][:, :, None].expand(-1, -1, local)
        return torch.cat([self.g2g_relative_position_bias, to_local], -1)


class FullAttention(_Attention):
    """For maps of one size."""

    def __init__(self, d, heads, globals_, size):
        rows, columns = size
        super().__init__(d, heads, globals_, (2 * rows - 1) * (2 * columns - 1))
        self.qkv = nn.Linear(d, 3 * d)
        at = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"))
        at = at.flatten(1)
        apart = at[:, :, None] - at[:, None]
        row = (apart[0] + rows - 1) * (2 * columns - 1) + apart[1] + columns - 1
        self.register_buffer("row", row, persistent=False)

    def forward(self, x, size):
        q, k, v = (_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        bias = self.local_relative_position_bias_table[self.row].permute(2, 0, 1)
        if self.globals:
            to_global = self.g2l_relative_position_bias[1][:, None].expand(-1, bias.shape[1], -1)
            bias = torch.cat([self.global_bias(bias.shape[1]), torch.cat([to_global, bias], -1)], 1)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
        return self.proj((torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))


class _Around(torch.autograd.Function):
    """[B, h, rows, columns, ww, M] of chunks -> [B, h, rows, columns, 9ww, M] of the chunks around
    each, zeros outside; gradients are added up in place."""

    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape[2:4]
        x = F.pad(x, (0, 0, 0, 0, 1, 1, 1, 1))
        x = torch.cat([x[:, :, i:i + rows] for i in range(3)], -2)
        return torch.cat([x[:, :, :, i:i + columns] for i in range(3)], -2)

    @staticmethod
    def backward(ctx, d):
        batch, heads, rows, columns, ww, width = d.shape
        across = d.new_zeros(batch, heads, rows, columns + 2, ww // 3, width)
        for i, part in enumerate(d.split(ww // 3, -2)):
            across[:, :, :, i:i + columns] += part
        down = d.new_zeros(batch, heads, rows + 2, columns + 2, ww // 9, width)
        for i, part in enumerate(across.split(ww // 9, -2)):
            down[:, :, i:i + rows] += part
        return down[:, :, 1:-1, 1:-1]


class _Weighed(torch.autograd.Function):
    """softmax(q k' + bias) v for q [B, h, rows, columns, ww, M] and k, v of [..., g + 9ww, M]; keys
    beyond the map weigh nothing. Scores are most of a step's memory traffic: one buffer each way."""

    @staticmethod
    def forward(ctx, q, k, v, bias):
        scores = q @ k.transpose(-1, -2)
        scores.add_(bias[:, None, None])
        ww = q.shape[-2]
        near = scores[..., -9 * ww:].unflatten(-1, (3, 3, ww))  # Columns of chunks before rows.
        near[:, :, 0, ..., 0, :] = near[:, :, -1, ..., 2, :] = -1e9
        near[:, :, :, 0, :, 0] = near[:, :, :, -1, :, 2] = -1e9
        weights = torch.softmax(scores, -1, out=scores)
        z = weights @ v
        ctx.save_for_backward(q, k, v, weights, z)
        return z

    @staticmethod
    def backward(ctx, d_z):
        q, k, v, weights, z = ctx.saved_tensors
        d_scores = d_z @ v.transpose(-1, -2)
        d_scores.sub_((d_z * z).sum(-1, keepdim=True)).mul_(weights)
        return (d_scores @ k, d_scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ d_z,
                d_scores.sum((0, 2, 3)))


class ChunkAttention(_Attention):
    """A local token sees the global tokens, its own chunk of w x w tokens and the eight around it.
    Local tokens come chunk by chunk."""

    def __init__(self, d, heads, globals_, w):
        super().__init__(d, heads, globals_, (4 * w - 1) ** 2)
        self.w = w
        self.query, self.kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
        own, near = torch.arange(w), torch.arange(3 * w) - w
        apart = (own[:, None] - near[None] + 2 * w - 1).unflatten(1, (3, w))  # [w, 3, w]
        # [own row, own column, chunk column, chunk row, row, column]
        row = apart[:, None, None, :, :, None] * (4 * w - 1) + apart[None, :, :, None, None, :]
        self.register_buffer("row", row.reshape(w * w, 9 * w * w), persistent=False)

    def forward(self, x, size):
        g, chunks = self.globals, (size[0] // self.w, size[1] // self.w, self.w ** 2)
        q = _heads(self.query(x), self.heads) * (x.shape[-1] // self.heads) ** -0.5
        k, v = (_heads(part, self.heads) for part in self.kv(x).chunk(2, -1))
        own, near_k, near_v = (part[:, :, g:].unflatten(2, chunks) for part in (q, k, v))
        near_k, near_v = _Around.apply(near_k), _Around.apply(near_v)
        bias = self.local_relative_position_bias_table[self.row].permute(2, 0, 1)
        if not g:
            z = _Weighed.apply(own, near_k, near_v, bias)
            return self.proj(z.flatten(2, 4).transpose(1, 2).flatten(2))
        far = self.g2l_relative_position_bias[1][:, None].expand(-1, bias.shape[1], -1)
        far_k, far_v = (part[:, :, None, None, :g].expand(-1, -1, *chunks[:2], -1, -1)
                        for part in (k, v))
        z = _Weighed.apply(own, torch.cat([far_k, near_k], -2), torch.cat([far_v, near_v], -2),
                           torch.cat([far, bias], -1))
        scores = q[:, :, :g] @ k.transpose(-1, -2) + self.global_bias(size[0] * size[1])
        first = torch.softmax(scores, -1) @ v
        return self.proj(torch.cat([first, z.flatten(2, 4)], 2).transpose(1, 2).flatten(2))


def by_chunk(x, size, w):
    """Rows [B, L, d] of a map, row by row -> chunk by chunk."""
    return x.unflatten(1, (size[0] // w, w, size[1] // w, w)).transpose(2, 3).flatten(1, 4)


def by_row(x, size, w):
    """Back from `by_chunk`."""
    return x.unflatten(1, (size[0] // w, size[1] // w, w, w)).transpose(2, 3).flatten(1, 4)


class _AttentionBlock(nn.Module):
    def __init__(self, stage, size):
        super().__init__()
        d = stage["d"]
        self.norm = nn.LayerNorm(d, _NORM_EPS)
        kind, extent = (ChunkAttention, stage["f"]) if stage["s"] else (FullAttention, size)
        self.attn = kind(d, stage["h"], stage["g"], extent)

    def forward(self, x, size):
        return x + self.attn(self.norm(x), size)


class _MlpBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d, _NORM_EPS)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(d, 4 * d), "fc2": nn.Linear(4 * d, d)})

    def forward(self, x, _):
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm(x))))


class _Embedding(nn.Module):
    def __init__(self, stage, channels):
        super().__init__()
        self.proj = nn.Conv2d(channels, stage["d"], stage["p"], stage["p"])
        self.norm_embed = nn.LayerNorm(stage["d"], _NORM_EPS)
        if stage["g"]:
            self.cls_token = nn.Parameter(torch.zeros(1, stage["g"], stage["d"]))

    def forward(self, x):
        """[B, c, H, W] -> rows [B, g + L, d], the map's size."""
        x = self.proj(x)
        size = tuple(x.shape[2:])
        x = self.norm_embed(x.flatten(2).transpose(1, 2))
        if hasattr(self, "cls_token"):
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
        return x, size


class Stages(nn.Module):
    """The stages, for images of one size (height, width)."""

    def __init__(self, arch, image_size):
        super().__init__()
        self.stages, channels, size = parse(arch), 3, image_size
        for number, stage in enumerate(self.stages, 1):
            size = tuple(side // stage["p"] for side in size)
            if stage["s"] and any(side % stage["f"] for side in size):
                raise ValueError(f"stage {number}: a map of {size} is no multiple of {stage['f']}")
            parts = [_Embedding(stage, channels)]
            for _ in range(stage["n"]):
                parts += [_AttentionBlock(stage, size), _MlpBlock(stage["d"])]
            setattr(self, f"layer{number}", nn.ModuleList(parts))
            channels = stage["d"]
        for name, value in self.named_parameters():
            if value.dim() > 1 and name.endswith("weight"):  # Narrow stages need more than 0.02.
                nn.init.normal_(value, std=value[0].numel() ** -0.5)
            elif value.dim() > 1:
                nn.init.normal_(value, std=0.02)
        # Flat patches are this vector, whatever noise or light is on them.
        nn.init.normal_(self.layer1[0].proj.bias, std=0.5)

    def maps(self, x):
        """Normalised pixels [B, 3, H, W] -> rows of the last stage (a chunked one's chunk by chunk), and
        all stages' maps."""
        maps = []
        for number, stage in enumerate(self.stages, 1):
            embed, *blocks = getattr(self, f"layer{number}")
            rows, size = embed(x)
            if stage["s"]:
                rows = torch.cat([rows[:, :stage["g"]],
                                  by_chunk(rows[:, stage["g"]:], size, stage["f"])], 1)
            for block in blocks:
                rows = block(rows, size)
            x = rows[:, stage["g"]:]
            x = (by_row(x, size, stage["f"]) if stage["s"] else x).transpose(1, 2).unflatten(2, size)
            maps.append(x)
        return rows, maps


class Vil(Stages):
    """A classifier of square images, by the mean over the tokens of the last stage."""

    def __init__(self, arch, image_side, labels):
        super().__init__(arch, (image_side, image_side))
        channels = self.stages[-1]["d"]
        self.norm = nn.LayerNorm(channels, _NORM_EPS)
        self.head = nn.Linear(channels, labels)
        nn.init.trunc_normal_(self.head.weight, std=0.02)

    def forward(self, x):
        """-> logits [B, labels]."""
        return self.head(self.norm(self.maps(x)[0]).mean(1))
