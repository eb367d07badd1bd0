#!/usr/bin/env python3
"""Makes a model directory of a pickled Composite Slice Transformer state dict.

    python3 models/convert/cst.py CHECKPOINT CONFIG DIR [--entry model_state_dict] [--prefix module.]

No checkpoint of the paper (Lee et al., ICLR 2023) was published, so CHECKPOINT is what a trainer of
one's own saved: tensors by the names that the server reads (models/cst/weights.h), in a dictionary
or, with --entry, one level below. CONFIG is the model's config.json: most of what it says leaves no
trace in the shapes. Every tensor that such a model has must be there with its shape, and no other
may. --reversed-clusters turns the cluster rows of an adaptive softmax around: fairseq-style toolkits
store the last tail first. No PyTorch is needed, and nothing in the file is run.
"""

import argparse
import json
import math
import pathlib
import sys

import command_line
import model_directory
import restricted_unpickler
import torch_file
from restricted_unpickler import RefusedError

_DEFAULT_HEADS = {
    "CSTForSequenceClassification": "sequence_classification",
    "CSTForMaskedLM": "masked_lm",
    "CSTForCausalLM": "causal_lm",
}
_WORDS = "cst.embeddings.word_embeddings.weight"
# Weights that a trainer with tied words saves a second time.
_TIED = {"masked_lm": "cls.predictions.decoder.weight", "causal_lm": "lm_head.weight"}
_CLUSTERS = ("lm_head.cluster_weight", "lm_head.cluster_bias")


class Settings:
    """The members of config.json that decide names and shapes, defaults filled in."""

    def __init__(self, config):
        try:
            architecture = config["architectures"][0]
            self.head = config.get("head", _DEFAULT_HEADS[architecture])
            self.vocab, self.width = config["vocab_size"], config["hidden_size"]
            self.layers, self.ffn = config["num_hidden_layers"], config["intermediate_size"]
            self.limit, self.slice = config["max_position_embeddings"], config["slice_length"]
        except (KeyError, IndexError, TypeError) as error:
            raise RefusedError(f"config.json lacks or does not know {error}") from error
        self.config = config
        self.embedding = config.get("embedding_size", self.width)
        self.causal = self.head == "causal_lm"
        extension = (config.get("extension_ratio", 1) - 1) * self.slice / 2
        if abs(extension - round(extension)) > 1e-6:
            raise RefusedError("extension_ratio does not extend slices by whole tokens")
        self.extension = round(extension)
        self.post = config.get("norm_position", "pre") == "post"

    def flag(self, key, default):
        return self.config.get(key, default)

    def choice(self, key, default, value):
        return self.config.get(key, default) == value

    def labels(self):
        named = self.config.get("id2label")
        return len(named) if named else self.config.get("num_labels", 2)


def dense(name, out, into, bias=True):
    shapes = {name + ".weight": [out, into]}
    if bias:
        shapes[name + ".bias"] = [out]
    return shapes


def norm(name, width):
    return {name + ".weight": [width], name + ".bias": [width]}


def position_tables(s, prefix):
    mixes = s.choice("local_mixer", "attention", "mlp")
    tiled = s.choice("local_position_extension", "learned", "tiled")
    places = s.slice + (0 if tiled else (1 if s.causal else 2) * s.extension)
    shapes = {prefix + "global_embeddings.weight": [math.ceil(s.limit / s.slice), s.width]}
    if not mixes:
        shapes[prefix + "local_embeddings.weight"] = [places, s.width]
    return shapes


def embedding_shapes(s):
    prefix = "cst.embeddings."
    shapes = {prefix + "word_embeddings.weight": [s.vocab, s.embedding]}
    if s.flag("type_vocab_size", 0):
        shapes[prefix + "token_type_embeddings.weight"] = [s.flag("type_vocab_size", 0),
                                                           s.embedding]
    if s.choice("position_embedding", "ms_vipe", "conventional"):
        shapes[prefix + "position_embeddings.weight"] = [s.limit, s.embedding]
    if s.flag("embedding_layer_norm", False):
        shapes.update(norm(prefix + "LayerNorm", s.embedding))
    if s.embedding != s.width:
        shapes.update(dense("cst.embeddings_project", s.width, s.embedding))
    return shapes


def layer_shapes(s, index):
    prefix = f"cst.encoder.layer.{index}."
    own = prefix + "attention.self."
    bias = s.flag("attention_bias", True)
    mixes = s.choice("local_mixer", "attention", "mlp")
    shared = s.flag("share_local_global", True)
    suffixes = ([] if mixes and not shared else [""]) + ([] if shared else ["_global"])
    shapes = {}
    for suffix in suffixes:
        for part in ("query", "key", "value"):
            shapes.update(dense(own + part + suffix, s.width, s.width, bias))
    if s.choice("slice_pooling", "mean", "linear"):
        shapes[own + "slice_pooling.weight"] = [s.width, s.width, s.slice]
        shapes[own + "slice_pooling.bias"] = [s.width]
    if mixes:
        hidden = s.flag("local_mixer_size", 0)
        shapes.update(dense(own + "local_mixer.dense_in", hidden, s.slice))
        shapes.update(dense(own + "local_mixer.dense_out", s.slice, hidden))
    if (s.choice("position_embedding", "ms_vipe", "ms_vipe")
            and not s.flag("ms_vipe_shared_across_layers", True)):
        shapes.update(position_tables(s, own + "ms_vipe."))
    if s.flag("attention_output_projection", True):
        shapes.update(dense(prefix + "attention.output.dense", s.width, s.width, bias))
    shapes.update(norm(prefix + "attention.output.LayerNorm", s.width))
    shapes.update(dense(prefix + "intermediate.dense", s.ffn, s.width))
    shapes.update(dense(prefix + "output.dense", s.width, s.ffn))
    shapes.update(norm(prefix + "output.LayerNorm", s.width))
    return shapes


def head_shapes(s):
    if s.head in ("lra_classifier", "lra_matching"):
        hidden = s.flag("classifier_hidden_size", s.ffn)
        parts = 1 if s.head == "lra_classifier" else \
            2 if s.choice("pair_interaction", "nli", "concat") else 4
        return {**dense("classifier.dense", hidden, parts * s.width),
                **dense("classifier.out_proj", s.labels(), hidden)}
    if s.head == "sequence_classification":
        pooler = {} if s.choice("pooler", "dense_tanh", "none") else \
            dense("cst.pooler.dense", s.width, s.width)
        return {**pooler, **dense("classifier", s.labels(), s.width)}
    tied = s.flag("tie_word_embeddings", True)
    if s.head == "masked_lm":
        name = "cls.predictions."
        shapes = {**dense(name + "transform.dense", s.embedding, s.width),
                  **norm(name + "transform.LayerNorm", s.embedding), name + "bias": [s.vocab]}
        if not tied:
            shapes[name + "decoder.weight"] = [s.vocab, s.embedding]
        return shapes
    shapes = {} if tied else {"lm_head.weight": [s.vocab, s.width]}
    adaptive = s.choice("lm_head", "tied", "adaptive")
    if adaptive or s.flag("lm_head_bias", False):
        shapes["lm_head.bias"] = [s.vocab]
    if adaptive:
        tails = len(s.flag("adaptive_cutoffs", [20000, 40000, 200000]))
        shapes.update({_CLUSTERS[0]: [tails, s.width], _CLUSTERS[1]: [tails]})
    return shapes


def expected_shapes(config):
    """Every tensor such a model has."""
    s = Settings(config)
    shapes = embedding_shapes(s)
    if (s.choice("position_embedding", "ms_vipe", "ms_vipe")
            and s.flag("ms_vipe_shared_across_layers", True)):
        shapes.update(position_tables(s, "cst.ms_vipe."))
    for index in range(s.layers):
        shapes.update(layer_shapes(s, index))
    if s.flag("final_layer_norm", not s.post):
        shapes.update(norm("cst.encoder.LayerNorm", s.width))
    return {**shapes, **head_shapes(s)}


def without_prefix(tensors, prefix):
    if not prefix:
        return dict(tensors)
    odd = [name for name in tensors if not name.startswith(prefix)]
    if odd:
        raise RefusedError(f"tensors without the prefix {prefix!r}: {sorted(odd)[:5]}")
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


def drop_tied_words(tensors, config):
    """Removes the second name of tied words; returns what to tell about it."""
    name = _TIED.get(Settings(config).head)
    if not config.get("tie_word_embeddings", True) or name not in tensors or _WORDS not in tensors:
        return ""
    if tensors[name] != tensors[_WORDS]:
        raise RefusedError(f"{name} is not {_WORDS}, which config.json ties")
    del tensors[name]
    return f", {name} is {_WORDS}"


class ReversedRows:
    """A file whose one tensor is read last row first."""

    def __init__(self, file, tensor):
        self._file, self._tensor = file, tensor

    def read_storage(self, storage):
        if not self._tensor.is_contiguous():
            raise RefusedError("cluster rows are not stored side by side")
        data = bytearray(self._file.read_storage(storage))
        begin = self._tensor.offset * storage.dtype.size
        rows = self._tensor.shape[0]
        size = self._tensor.bytes // rows
        stored = bytes(data[begin:begin + rows * size])
        data[begin:begin + rows * size] = b"".join(
            stored[row * size:(row + 1) * size] for row in reversed(range(rows)))
        return bytes(data)


def convert(options):
    config = json.loads(options.config.read_text("utf-8"))
    entry = options.entry
    file = torch_file.open_file(options.checkpoint,
                                (lambda saved: restricted_unpickler.entry(saved, entry))
                                if entry else restricted_unpickler.check_state_dict)
    file.tensors = without_prefix(file.tensors, options.prefix)
    tied = drop_tied_words(file.tensors, config)
    model_directory.check(file.tensors, expected_shapes(config))
    tensors = model_directory.untied(file)
    if options.reversed_clusters:
        if _CLUSTERS[0] not in tensors:
            raise RefusedError("--reversed-clusters: the model has no adaptive softmax")
        for name in _CLUSTERS:
            tensors[name] = (ReversedRows(*tensors[name]), tensors[name][1])
    size = model_directory.write(options.directory, tensors, {}, config)
    return f"{options.directory}: {len(tensors)} tensors, {size} bytes{tied}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--entry", help="the state dict's key in what the trainer saved")
    parser.add_argument("--prefix", default="", help="in front of every name, such as module.")
    parser.add_argument("--reversed-clusters", action="store_true",
                        help="cluster rows stand last tail first")
    options = parser.parse_args(arguments)
    return command_line.run(options.checkpoint, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
