"""HuggingFace's LongformerForSequenceClassification, computed for training on a small CPU.

Same parameters, same numbers (check_parity.py: to 1e-4 on documents up to 4,096 tokens), less
work: blocks of one-sided window length instead of overlapping chunks, and the last layer only
for the first token, since the classifier reads nothing else. Global attention is on the first
token alone, the class's default.
"""
import torch
import torch.nn.functional as F


def _block_mask(length, n, w, device):
    """True where a query may see a key of the window.

    length: [B] real tokens; n: padded tokens, a multiple of w. Returns [B, n / w, w, 3 w]: keys
    from one block before the query's to one block after. The first token is not among them:
    it is global and has a column of its own.
    """
    block = torch.arange(n // w, device=device)[:, None, None] * w
    query = block + torch.arange(w, device=device)[None, :, None]
    key = block - w + torch.arange(3 * w, device=device)[None, None, :]
    near = (key - query).abs() <= w
    real = (key > 0) & (key < length[:, None, None, None])
    return near & real


def _window_attention(attention, x, mask, w):
    """Attention of all tokens through the local projections; x: [B, n, H] to [B, n, H]."""
    batch, n, hidden = x.shape
    heads, blocks = attention.num_heads, n // w

    def split(linear):
        return linear(x).view(batch, n, heads, -1).transpose(1, 2)

    q, k, v = split(attention.query), split(attention.key), split(attention.value)
    q = q.reshape(batch, heads, blocks, w, -1) / q.shape[-1] ** 0.5

    def windows(t):  # [B, A, n, d] to [B, A, n / w, 3 w, d]
        return F.pad(t, (0, 0, w, w)).unfold(2, 3 * w, w).transpose(-1, -2)

    scores = torch.matmul(q, windows(k).transpose(-1, -2))
    scores = scores.masked_fill(~mask[:, None], torch.finfo(x.dtype).min)
    first = (q * k[:, :, None, :1]).sum(-1, keepdim=True)
    weights = torch.softmax(torch.cat([first, scores], dim=-1), dim=-1)
    out = torch.matmul(weights[..., 1:], windows(v)) + weights[..., :1] * v[:, :, None, :1]
    return out.reshape(batch, heads, n, -1).transpose(1, 2).reshape(batch, n, hidden)


def _global_attention(attention, x, real):
    """The first token over all real ones, [B, 1, H].

    The key and value projections are folded into the one query and the one weighted sum; a key
    bias adds the same to every score of a softmax and falls out.
    """
    batch, _, hidden = x.shape
    heads = attention.num_heads
    q = attention.query_global(x[:, :1]).view(batch, heads, -1) / (hidden // heads) ** 0.5
    key = attention.key_global.weight.view(heads, -1, hidden)
    scores = torch.matmul(torch.einsum("bad,adh->bah", q, key), x.transpose(1, 2))
    scores = scores.masked_fill(~real[:, None], torch.finfo(x.dtype).min)
    mixed = torch.matmul(torch.softmax(scores, dim=-1), x)
    value = attention.value_global
    out = torch.einsum("bah,adh->bad", mixed, value.weight.view(heads, -1, hidden))
    return (out.reshape(batch, hidden) + value.bias)[:, None]


def _rest_of_layer(layer, attended, x):
    output = layer.attention.output
    x = output.LayerNorm(output.dense(attended) + x)
    return layer.output.LayerNorm(layer.output.dense(F.gelu(layer.intermediate.dense(x))) + x)


def logits(model, ids, length, positions):
    """[B, labels] of right-padded ids [B, n]; n is a multiple of every one-sided window.

    positions: [B, n] rows of the position table. HuggingFace's are 2, 3, 4, ...
    """
    encoder = model.longformer
    table = encoder.embeddings
    x = table.word_embeddings(ids) + table.position_embeddings(positions)
    x = table.LayerNorm(x + table.token_type_embeddings.weight[0])
    real = torch.arange(ids.shape[1], device=ids.device) < length[:, None]
    masks = {}
    layers = encoder.encoder.layer
    for index, layer in enumerate(layers):
        attention = layer.attention.self
        first = _global_attention(attention, x, real)
        if index + 1 == len(layers):
            x = _rest_of_layer(layer, first, x[:, :1])
            break
        w = attention.one_sided_attn_window_size
        if w not in masks:
            masks[w] = _block_mask(length, ids.shape[1], w, ids.device)
        window = _window_attention(attention, x, masks[w], w)
        x = _rest_of_layer(layer, torch.cat([first, window[:, 1:]], dim=1), x)
    head = model.classifier
    return head.out_proj(torch.tanh(head.dense(x[:, 0])))
