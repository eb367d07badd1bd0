"""BERT (Devlin et al. 2019) in NumPy, by the names of HuggingFace's checkpoints: what the server's
answers are compared with."""

import json
import math

import numpy as np
from safetensors.numpy import save_file

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "long", "short", "document", "##s", "read",
         "##ing", "a", "b", "c", ",", "."]
WIDTH, HEADS, LAYERS, INNER, POSITIONS, TYPES = 32, 4, 2, 48, 40, 2
EPS = 1e-12

erf = np.vectorize(math.erf)


def gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


class Bert:
    """Random weights of one class; `head` maps a tensor's name to its shape."""

    def __init__(self, architecture, head, prefix="bert.", seed=0):
        self.architecture, self.prefix = architecture, prefix
        random = np.random.default_rng(seed)
        self.tensors = {}

        def add(name, *shape):
            scale = 1 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.3
            values = random.normal(0, scale, shape)
            if name.endswith("LayerNorm.weight"):
                values += 1
            self.tensors[name] = values.astype(np.float32)

        def linear(name, out, inner):
            add(name + ".weight", out, inner)
            add(name + ".bias", out)

        def norm(name):
            add(name + ".weight", WIDTH)
            add(name + ".bias", WIDTH)

        for name, rows in (("word", len(WORDS)), ("position", POSITIONS), ("token_type", TYPES)):
            add(f"{prefix}embeddings.{name}_embeddings.weight", rows, WIDTH)
        norm(prefix + "embeddings.LayerNorm")
        for i in range(LAYERS):
            layer = f"{prefix}encoder.layer.{i}."
            for part in ("query", "key", "value"):
                linear(f"{layer}attention.self.{part}", WIDTH, WIDTH)
            linear(layer + "attention.output.dense", WIDTH, WIDTH)
            norm(layer + "attention.output.LayerNorm")
            linear(layer + "intermediate.dense", INNER, WIDTH)
            linear(layer + "output.dense", WIDTH, INNER)
            norm(layer + "output.LayerNorm")
        for name, shape in head.items():
            add(name, *shape)

    def save(self, folder, **changes):
        folder.mkdir(parents=True)
        config = {"architectures": [self.architecture], "model_type": "bert",
                  "vocab_size": len(WORDS), "hidden_size": WIDTH, "num_attention_heads": HEADS,
                  "num_hidden_layers": LAYERS, "intermediate_size": INNER, "hidden_act": "gelu",
                  "max_position_embeddings": POSITIONS, "type_vocab_size": TYPES,
                  "pad_token_id": 0, **changes}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        (folder / "tokenizer_config.json").write_text(
            '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
        save_file(self.tensors, folder / "model.safetensors", {"format": "pt"})
        return folder

    def get(self, name):
        return self.tensors[name].astype(np.float64)

    def linear(self, x, name):
        return x @ self.get(name + ".weight").T + self.get(name + ".bias")

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
        return x * self.get(name + ".weight") + self.get(name + ".bias")

    def hidden(self, ids, types=None):
        """The last hidden states, [tokens, width]."""
        prefix, n = self.prefix, len(ids)
        table = f"{prefix}embeddings.%s_embeddings.weight"
        x = self.get(table % "word")[ids] + self.get(table % "position")[:n]
        x = x + self.get(table % "token_type")[types if types is not None else [0] * n]
        x = self.norm(x, prefix + "embeddings.LayerNorm")
        for i in range(LAYERS):
            layer = f"{prefix}encoder.layer.{i}."
            q, k, v = (self.linear(x, f"{layer}attention.self.{part}")
                       .reshape(n, HEADS, -1).transpose(1, 0, 2)
                       for part in ("query", "key", "value"))
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            z = (scores / scores.sum(-1, keepdims=True)) @ v
            z = self.linear(z.transpose(1, 0, 2).reshape(n, WIDTH),
                            layer + "attention.output.dense")
            x = self.norm(x + z, layer + "attention.output.LayerNorm")
            y = gelu(self.linear(x, layer + "intermediate.dense"))
            x = self.norm(x + self.linear(y, layer + "output.dense"), layer + "output.LayerNorm")
        return x

    def pooled(self, ids, types=None):
        return np.tanh(self.linear(self.hidden(ids, types)[0], self.prefix + "pooler.dense"))

    def words(self, ids):
        """Logits over the vocabulary, by the decoder's own table and bias where it has them."""
        x = gelu(self.linear(self.hidden(ids), "cls.predictions.transform.dense"))
        x = self.norm(x, "cls.predictions.transform.LayerNorm")
        decoder = "cls.predictions.decoder"
        if decoder + ".weight" in self.tensors:
            return self.linear(x, decoder)
        table = self.get(f"{self.prefix}embeddings.word_embeddings.weight")
        return x @ table.T + self.get("cls.predictions.bias")
