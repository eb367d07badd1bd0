"""Long-short attention of images as its definition reads, every query over every key of its map
(Zhu et al. 2021, section 4.3, as the authors run it), for any size of map."""

import torch


def split(rows, heads):
    """[B, N, C] to [B, heads, N, C / heads]."""
    return rows.unflatten(2, (heads, -1)).transpose(1, 2)


def merge(rows):
    return rows.transpose(1, 2).flatten(2)


def seen(size, window):
    """Which keys of the map are in the tile of a query's window: [F, F]."""
    reach = max(window // 2, 1)

    def along(side):
        place = torch.arange(side)
        begin = (place // window * window)[:, None]
        return (place >= begin - reach) & (place < begin + window + reach)

    rows, columns = (along(side) for side in size)
    return (rows[:, None, :, None] & columns[None, :, None, :]).flatten(0, 1).flatten(1)


def window_bias(table, size, window):
    """Rows of the table for every query and key: [heads, F, F]. Some rows serve several offsets."""
    half = window // 2

    def along(side):
        place = torch.arange(side)
        return place[:, None] - place + half + window - 1

    rows, columns = (along(side) for side in size)
    index = rows[:, None, :, None] * (window + 2 * half) + columns[None, :, None, :]
    index = index.flatten(0, 1).flatten(1)
    # Of keys that no query sees the row may lie outside the table.
    return table[index.clamp(0, len(table) - 1)].permute(2, 0, 1)


def landmarks(scores, rows, heads, norm):
    """[B, heads, r, d]: rows [B, heads, F, d] weighed by scores [B, F, heads * r]."""
    weights = split(scores, heads).transpose(2, 3).softmax(dim=-1)
    return split(norm(merge(weights @ rows)), heads)


def long_short(q, k, v, size, heads, window, scores=(), norm=None, globals_=0, table=None,
               joint=False):
    """q (scaled), k, v [B, N, C], class rows first; scores: of the keys' landmarks and of the
    values'. `joint`: class rows attend to the map's keys, else to its outputs. [B, N, C]."""
    q, k, v = (split(rows, heads) for rows in (q, k, v))
    class_q, class_k, class_v = (rows[:, :, :globals_] for rows in (q, k, v))
    q, k, v = (rows[:, :, globals_:] for rows in (q, k, v))
    logits, values = [], []
    if scores:
        logits.append(q @ landmarks(scores[0], k, heads, norm).transpose(2, 3))
        values.append(landmarks(scores[1], v, heads, norm))
    if window > 0:
        near = q @ k.transpose(2, 3)
        if table is not None:
            near = near + window_bias(table, size, window)
        logits.append(near.masked_fill(~seen(size, window), -torch.inf))
        values.append(v)
    logits.append(q @ class_k.transpose(2, 3))
    values.append(class_v)
    out = torch.cat(logits, 3).softmax(3) @ torch.cat(values, 2)
    if globals_ > 0:
        keys = torch.cat([class_k, k if joint else out], 2)
        rows = torch.cat([class_v, v if joint else out], 2)
        out = torch.cat([(class_q @ keys.transpose(2, 3)).softmax(3) @ rows, out], 2)
    return merge(out)
