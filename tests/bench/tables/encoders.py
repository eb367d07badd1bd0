"""Text classifiers of one shape that differ in their attention, as configurations of Longview."""

import dataclasses

VOCABULARY = 257


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of every layer; `tokens` is the longest document's."""
    width: int
    heads: int
    inside: int
    layers: int
    tokens: int

    def __str__(self):
        return f"{self.layers} layers of width {self.width}, {self.heads} heads, {self.inside} inside"


def full(shape):
    """BERT's layers: attention of every token to every token."""
    return {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": VOCABULARY,
            "hidden_size": shape.width, "num_attention_heads": shape.heads, "intermediate_size": shape.inside,
            "num_hidden_layers": shape.layers, "max_position_embeddings": shape.tokens, "type_vocab_size": 2,
            "hidden_act": "gelu", "pad_token_id": 0, "num_labels": 2}


def transformer_ls(shape, window=8, rank=32, **others):
    return {"model_type": "transformer_ls", "architectures": ["TransformerLSForSequenceClassification"],
            "vocab_size": VOCABULARY, "d": shape.width, "heads": shape.heads, "layers": shape.layers,
            "ff": shape.inside, "max_seq_len": shape.tokens, "window": window, "rank": rank, "num_labels": 2, **others}


def luna(shape, rows, **others):
    """`rows` of the packed sequence P."""
    return {"model_type": "luna", "architectures": ["LunaForSequenceClassification"], "vocab_size": VOCABULARY,
            "hidden_size": shape.width, "ffn_size": shape.inside, "num_layers": shape.layers,
            "num_heads": shape.heads, "proj_len": rows, "max_positions": shape.tokens,
            "classifier_out_dim": shape.inside, "num_labels": 2, **others}


def cst(shape, slice_length, **others):
    return {"model_type": "cst", "architectures": ["CSTForSequenceClassification"], "head": "lra_classifier",
            "vocab_size": VOCABULARY, "hidden_size": shape.width, "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads, "intermediate_size": shape.inside, "slice_length": slice_length,
            "max_position_embeddings": shape.tokens, "num_labels": 2, **others}


def longformer(shape, window=512, **others):
    """`window`: tokens on both sides together."""
    return {"model_type": "longformer", "architectures": ["LongformerForSequenceClassification"],
            "vocab_size": VOCABULARY, "hidden_size": shape.width, "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads, "intermediate_size": shape.inside,
            "attention_window": [window] * shape.layers, "max_position_embeddings": shape.tokens + 2,
            "type_vocab_size": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "pad_token_id": 1, "bos_token_id": 0,
            "eos_token_id": 2, "sep_token_id": 2, "num_labels": 2, **others}
