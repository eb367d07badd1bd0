#!/usr/bin/env python3
"""Makes a model directory of what the Long Range Arena trainer of NVIDIA/transformer-ls saved.

    python3 models/convert/transformer_ls_text.py CHECKPOINT DIR --heads 2 --window 8 --task text

CHECKPOINT is <experiment>_output.model, {"model_state_dict": ...}. Sizes follow from the shapes;
the number of heads and the window leave no trace in the file and must be given (the run scripts'
values are 2 and 8). Every tensor is checked by name and shape; one that is not expected is
refused. ListOps needs --vocabulary: its word order was random and is not in the checkpoint.
No PyTorch is needed, and nothing in the file is run.
"""

import argparse
import functools
import pathlib
import re
import shutil
import sys

import command_line
import model_directory
import restricted_unpickler
import torch_file
from restricted_unpickler import RefusedError

_WORDS = "model.embeddings.word_embeddings.weight"
_POSITIONS = "model.embeddings.position_embeddings.weight"
_HIDDEN = "seq_classifer.mlpblock.0."
_OUT = "seq_classifer.mlpblock.2."
# Tokens that the trainer's data files keep of a text.
_TASK_TOKENS = {"text": 4000, "retrieval": 4096, "listops": 2000}

shape = functools.partial(model_directory.shape, family="Transformer-LS text model")


def read_config(tensors, heads, window, cls_mode):
    """config.json by the shapes."""
    vocab, width = shape(tensors, _WORDS)
    ff, features = shape(tensors, _HIDDEN + "weight")
    layers = {m[1] for name in tensors if (m := re.match(r"model\.transformer_(\d+)\.", name))}
    tied = any(name.startswith("model.transformer.") for name in tensors)
    if tied == bool(layers):
        raise RefusedError("expected layers model.transformer_0. and on, or model.transformer.")
    columns = shape(tensors, f"model.transformer{'' if tied else '_0'}.mha.dconv_fc.weight")[0]
    if width % heads or columns % heads:
        raise RefusedError(f"{heads} heads do not divide width {width} and {columns} projections")
    if features not in (width, 4 * width):
        raise RefusedError(f"{_HIDDEN}weight reads {features} features, expected {width} or "
                           f"{4 * width}")
    if ("model.cls_embed" in tensors) != (cls_mode in ("last_layer", "all_layers")):
        raise RefusedError(f"cls_mode {cls_mode} and the tensor model.cls_embed do not go together")
    kind = "Pair" if features == 4 * width else ""
    classes = shape(tensors, _OUT + "weight")[0]
    return {
        "model_type": "transformer_ls",
        "architectures": [f"TransformerLSForSequence{kind}Classification"],
        "vocab_size": vocab,
        "d": width,
        "heads": heads,
        "layers": 0 if tied else len(layers),
        "ff": ff,
        "max_seq_len": shape(tensors, _POSITIONS)[0],
        "window": window,
        "rank": columns // heads,
        "cls_mode": cls_mode,
        "tied_weights": tied,
        "num_labels": classes,
    }


def expected_shapes(config):
    """Every tensor such a model has."""
    d, ff = config["d"], config["ff"]
    columns = config["heads"] * config["rank"]
    features = 4 * d if "Pair" in config["architectures"][0] else d

    def dense(name, out, into):
        return {name + "weight": [out, into], name + "bias": [out]}

    def norm(name):
        return {name + ".weight": [d], name + ".bias": [d]}

    shapes = {
        _WORDS: [config["vocab_size"], d],
        _POSITIONS: [config["max_seq_len"], d],
        **norm("model.norm"),
        **dense(_HIDDEN, ff, features),
        **dense(_OUT, config["num_labels"], ff),
    }
    if config["cls_mode"] in ("last_layer", "all_layers"):
        shapes["model.cls_embed"] = [1, 1, d]
    stored = [""] if config["tied_weights"] else [f"_{i}" for i in range(config["layers"])]
    for suffix in stored:
        layer = f"model.transformer{suffix}."
        for part in ("norm1", "norm2", "mha.dual_ln_s", "mha.dual_ln_l"):
            shapes.update(norm(layer + part))
        for part in ("W_q", "W_k", "W_v", "W_o"):
            shapes.update(dense(f"{layer}mha.{part}.", d, d))
        shapes.update(dense(f"{layer}mha.dconv_fc.", columns, d))
        shapes.update(dense(f"{layer}mlpblock.0.", ff, d))
        shapes.update(dense(f"{layer}mlpblock.3.", d, ff))
    return shapes


def tokenizer_config(task, positions):
    limit = min(_TASK_TOKENS[task], positions)
    if task == "listops":
        return {"tokenizer_class": "LRAWordTokenizer", "split_pattern": "\\W+",
                "vocab_file": "vocab.json", "pad_token_id": 0, "model_max_length": limit}
    return {"tokenizer_class": "LRAByteTokenizer", "byte_offset": 1, "pad_token_id": 0,
            "model_max_length": limit}


def convert(options):
    file = torch_file.open_file(
        options.checkpoint, lambda saved: restricted_unpickler.entry(saved, "model_state_dict"))
    config = read_config(file.tensors, options.heads, options.window, options.cls_mode)
    if config["tied_weights"]:
        if options.layers is None:
            raise RefusedError("one layer is stored for all: --layers says how often it applies")
        config["layers"] = options.layers
    model_directory.check(file.tensors, expected_shapes(config))
    if options.task == "listops" and options.vocabulary is None:
        raise RefusedError("ListOps checkpoints need --vocabulary: word ids are not in the file")
    tensors = model_directory.untied(file)
    size = model_directory.write(options.directory, tensors, {}, config)
    if options.task:
        model_directory.write_json(options.directory / "tokenizer_config.json",
                                   tokenizer_config(options.task, config["max_seq_len"]))
    if options.task == "listops":
        shutil.copyfile(options.vocabulary, options.directory / "vocab.json")
    return f"{options.directory}: {len(tensors)} tensors, {size} bytes"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--heads", type=int, required=True)
    parser.add_argument("--window", type=int, required=True, help="window_size; 0 or less: none")
    parser.add_argument("--cls-mode", default="last_layer",
                        choices=["last_layer", "all_layers", "first_token", "none"])
    parser.add_argument("--layers", type=int, help="how often a tied layer applies")
    parser.add_argument("--task", choices=sorted(_TASK_TOKENS), help="writes the task's tokenizer")
    parser.add_argument("--vocabulary", type=pathlib.Path, help="ListOps: a JSON object word -> id")
    options = parser.parse_args(arguments)
    return command_line.run(options.checkpoint, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
