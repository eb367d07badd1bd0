"""Models of the papers' tables by their names, changed where a table needs it, as directories of weights."""

import hashlib
import json
import pathlib

from tables.configurations import files_beside, read
from tables.served import make

BERT = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 30522,
        "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
        "max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "num_labels": 2}

# Transformer-LS over RoBERTa's shape. Windows and ranks of the paper's were never published: these are ours.
LS_BASE = {"model_type": "transformer_ls", "architectures": ["TransformerLSForSequenceClassification"],
           "vocab_size": 50265, "d": 768, "heads": 12, "layers": 12, "ff": 3072, "max_seq_len": 4096,
           "window": 128, "rank": 64, "num_labels": 2}
LS_LARGE = {**LS_BASE, "d": 1024, "heads": 16, "layers": 24, "ff": 4096}


def shape(name, **changes):
    """The config of the first row of this name, with some keys as the table needs them."""
    return {**next(row.config for row in read() if row.name == name and row.served), **changes}


def directory(options, config, zeros=True, **settings):
    """A model directory of this config, made once a run; `settings` are longview.json's."""
    mark = hashlib.sha256(json.dumps([config, zeros, settings], sort_keys=True).encode()).hexdigest()[:12]
    folder = pathlib.Path(options.scratch) / f"{config['model_type']}-{mark}"
    beside = {"longview.json": json.dumps({"warmup": False, **settings})}
    return make(folder, config, {**beside, **files_beside(config)}, zeros)
