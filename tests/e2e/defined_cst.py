"""The Composite Slice Transformer as its definition reads (Lee et al. 2023, and what the server's
format settles where the paper does not), slice by slice in double precision: every option and
ablation."""

import math

import torch
from torch.nn import functional as F

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def extension(config):
    return round((config["extension_ratio"] - 1) * config["slice_length"] / 2)


def local_rows(config):
    """Rows of the local position table."""
    reach, length = extension(config), config["slice_length"]
    if config["local_position_extension"] == "tiled":
        return length
    return length + (reach if config["is_decoder"] else 2 * reach)


class PlainCst:
    def __init__(self, config, tensors):
        self.c = config
        self.t = {name: tensor.double() for name, tensor in tensors.items()}

    def dense(self, name, x):
        return F.linear(x, self.t[name + ".weight"], self.t.get(name + ".bias"))

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.t[name + ".weight"], self.t[name + ".bias"],
                            self.c["layer_norm_eps"])

    def table(self, own, part, rows):
        """Position rows of `part` (local or global); zeros where attention has none."""
        if self.c["position_embedding"] != "ms_vipe":
            return torch.zeros(rows, self.c["hidden_size"], dtype=torch.double)
        place = "cst." if self.c["ms_vipe_shared_across_layers"] else own
        return self.t[f"{place}ms_vipe.{part}_embeddings.weight"][:rows]

    def attend(self, q, k, v, seen):
        """seen [queries, keys]; a query that sees nothing answers zero."""
        heads = self.c["num_attention_heads"]
        q, k, v = (rows.unflatten(1, (heads, -1)).transpose(0, 1) for rows in (q, k, v))
        scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(~seen, -torch.inf)
        weights = scores.softmax(2).nan_to_num(0.0)
        return (weights @ v).transpose(0, 1).flatten(1)

    def local(self, own, x, mask):
        """Outputs of all places; x has whole slices."""
        c, length, reach = self.c, self.c["slice_length"], extension(self.c)
        if c["local_mixer"] == "mlp":
            slices = (x * mask[:, None]).unflatten(0, (-1, length)).transpose(1, 2)
            hidden = F.gelu(self.dense(own + "local_mixer.dense_in", slices))
            return self.dense(own + "local_mixer.dense_out", hidden).transpose(1, 2).flatten(0, 1)
        tiled = c["local_position_extension"] == "tiled"
        table, outputs = self.table(own, "local", local_rows(c)), []
        for begin in range(0, len(x), length):
            place = torch.arange(begin - reach, begin + length + (0 if c["is_decoder"] else reach))
            inside = (place >= 0) & (place < len(x))
            keys = torch.where(inside[:, None], x[place.clamp(0, len(x) - 1)], 0.0)
            seen = torch.where(inside, mask[place.clamp(0, len(x) - 1)],
                               c["ext_boundary"] == "zero").expand(length, -1)
            if c["is_decoder"]:
                seen = seen & (place <= torch.arange(begin, begin + length)[:, None])
            of_query = table if tiled else table[reach:reach + length]
            of_key = table[place % length] if tiled else table
            outputs.append(self.attend(
                self.dense(own + "query", x[begin:begin + length] + of_query[:length]),
                self.dense(own + "key", keys + of_key), self.dense(own + "value", keys), seen))
        return torch.cat(outputs)

    def pool(self, own, x, mask):
        """Slice embeddings, and which slices have any token."""
        length, kind = self.c["slice_length"], self.c["slice_pooling"]
        rows, seen = x.unflatten(0, (-1, length)), mask.unflatten(0, (-1, length))
        some = seen.any(1)
        if kind == "mean":
            pooled = (rows * seen[..., None]).sum(1) / seen.sum(1).clamp(min=1)[:, None]
        elif kind == "max":
            pooled = rows.masked_fill(~seen[..., None], -torch.inf).amax(1)
        else:
            pooled = torch.einsum("oij,sji->so", self.t[own + "slice_pooling.weight"],
                                  rows * seen[..., None]) + self.t[own + "slice_pooling.bias"]
        return torch.where(some[:, None], pooled, 0.0), some

    def across(self, own, pooled, some):
        """Outputs of the slices."""
        c, count = self.c, len(pooled)
        suffix = "" if c["share_local_global"] else "_global"
        table = self.table(own, "global", count)
        project = lambda part, rows: self.dense(own + part + suffix, rows)  # noqa: E731
        k, v = project("key", pooled + table), project("value", pooled)
        if not c["is_decoder"]:
            keys = some if c["mask_empty_slices"] else torch.ones_like(some)
            return self.attend(project("query", pooled + table), k, v, keys.expand(count, -1))
        before = torch.cat([torch.zeros_like(pooled[:1]), pooled[:-1]])
        shifted = table.roll(1, 0) if c["global_query_shift"] == "projected" else table
        earlier = torch.ones(count, count, dtype=torch.bool).tril(-1)
        return self.attend(project("query", before + shifted), k, v, earlier)

    def attention(self, layer, x, mask):
        own, c = layer + "attention.self.", self.c
        length, count = c["slice_length"], len(x)
        spare = -count % length
        x, mask = F.pad(x, (0, 0, 0, spare)), F.pad(mask, (0, spare))
        spread = lambda rows: rows.repeat_interleave(length, 0)  # noqa: E731
        if c["msmra_order"] == "global_first":
            wide = spread(self.across(own, *self.pool(own, x, mask)))
            real = torch.arange(len(x)) < count
            y = self.local(own, torch.where(real[:, None], x + wide, 0.0), mask) + wide
        else:
            y = self.local(own, x, mask)
            source = x if c["msmra_order"] == "parallel" else y
            y = y + spread(self.across(own, *self.pool(own, source, mask)))
        y = y[:count]
        return self.dense(layer + "attention.output.dense", y) if (
            c["attention_output_projection"]) else y

    def feed_forward(self, layer, x):
        inner = ACTIVATIONS[self.c["hidden_act"]](self.dense(layer + "intermediate.dense", x))
        return self.dense(layer + "output.dense", inner)

    def states(self, ids, types=None):
        """Of the last layer, and the mask."""
        c, name = self.c, "cst.embeddings."
        mask = ids != 0 if c["pad_mask_source"] == "nonzero_id" else torch.ones_like(ids) > 0
        h = c["embedding_scale"] * self.t[name + "word_embeddings.weight"][ids]
        if c["position_embedding"] == "conventional":
            h = h + self.t[name + "position_embeddings.weight"][:len(ids)]
        if c["type_vocab_size"] > 0:
            types = torch.zeros_like(ids) if types is None else types
            h = h + self.t[name + "token_type_embeddings.weight"][types]
        h = self.norm(name + "LayerNorm", h) if c["embedding_layer_norm"] else h
        if c["embedding_size"] != c["hidden_size"]:
            h = self.dense("cst.embeddings_project", h)
        for i in range(c["num_hidden_layers"]):
            layer = f"cst.encoder.layer.{i}."
            first = lambda x: self.norm(layer + "attention.output.LayerNorm", x)  # noqa: E731
            second = lambda x: self.norm(layer + "output.LayerNorm", x)  # noqa: E731
            feed = lambda x: self.feed_forward(layer, x)  # noqa: E731
            if c["norm_position"] == "pre":
                h = h + self.attention(layer, first(h), mask)
                h = h + feed(second(h))
            else:
                h = first(h + self.attention(layer, h, mask))
                h = second(h + feed(h))
        return (self.norm("cst.encoder.LayerNorm", h) if c["final_layer_norm"] else h), mask

    def pooled(self, ids, types=None):
        h, mask = self.states(ids, types)
        padded = self.c["pooling"] == "mean_padded"
        return (h * mask[:, None]).sum(0) / (
            self.c["max_position_embeddings"] if padded else mask.sum())

    def logits(self, ids, other=None, types=None):
        """Of the model's head; `other` is the second document of a pair. Adaptive heads answer
        log-probabilities."""
        c, head = self.c, self.c["head"]
        if head == "causal_lm":
            return self.next_words(self.states(ids)[0])
        if head == "masked_lm":
            z = self.norm("cls.predictions.transform.LayerNorm", F.gelu(
                self.dense("cls.predictions.transform.dense", self.states(ids, types)[0])))
            matrix = self.t.get("cls.predictions.decoder.weight",
                                self.t["cst.embeddings.word_embeddings.weight"])
            return F.linear(z, matrix, self.t["cls.predictions.bias"])
        r = self.pooled(ids, types)
        if head == "sequence_classification":
            r = torch.tanh(self.dense("cst.pooler.dense", r)) if c["pooler"] != "none" else r
            return self.dense("classifier", r)
        if head == "lra_matching":
            b = self.pooled(other)
            r = torch.cat([r, b, r * b, r - b] if c["pair_interaction"] == "nli" else [r, b])
        return self.dense("classifier.out_proj", F.relu(self.dense("classifier.dense", r)))

    def next_words(self, h):
        c = self.c
        matrix = self.t.get("lm_head.weight", self.t["cst.embeddings.word_embeddings.weight"])
        logits = F.linear(h, matrix, self.t.get("lm_head.bias"))
        if c["lm_head"] != "adaptive":
            return logits
        cuts = [*c["adaptive_cutoffs"], c["vocab_size"]]
        clusters = F.linear(h, self.t["lm_head.cluster_weight"], self.t["lm_head.cluster_bias"])
        front = torch.cat([logits[:, :cuts[0]], clusters], 1).log_softmax(1)
        parts = [front[:, :cuts[0]]]
        for i, (begin, end) in enumerate(zip(cuts, cuts[1:])):
            parts.append(front[:, cuts[0] + i, None] + logits[:, begin:end].log_softmax(1))
        return torch.cat(parts, 1)
