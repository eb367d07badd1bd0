#!/usr/bin/env python3
"""Makes a model directory from a checkpoint of the published Luna code (fairseq-apollo, 2021).

    python3 models/convert/fairseq_luna.py checkpoint_best.pt dict.txt DIR \\
        [--labels dict.label.txt] [--head NAME] [--target-dictionary dict.de.txt]

The names of the tensors say what the model is: a Long Range Arena classifier or matcher, a
RoBERTa-style encoder (with --head: one of its classification heads), a translation model. Sizes come
from the tensors, the rest from the options that training saved (`args`); both must agree, and every
tensor must have the name and shape that they ask for. Dictionaries are not in the checkpoint, and
ids mean nothing without them; labels are classes by the rank of their frequency.

What the file cannot say: --legacy-roles for tied checkpoints from before July 2021, and
--causal-activation elu1 for translation models from before August 2021.
Nothing in the pickle is run; PyTorch is not needed.
"""

import pathlib
import re
import shutil
import struct
import sys

import command_line
import fairseq_files
import luna_names
import model_directory
import pickle_to_safetensors
import torch_file
from restricted_unpickler import Namespace, RefusedError

_FORMATS = {"F16": "e", "F32": "f"}
_ACTIVATIONS = ("gelu", "gelu_accurate", "gelu_fast", "relu", "tanh", "linear")
_OLD_NORMS = {
    "encoder": ("self_attn", "final"),
    "decoder": ("self_attn", "encoder_attn", "final"),
}


class Options:
    """The training options of a checkpoint, typed."""

    def __init__(self, namespace):
        self._values = vars(namespace)

    def get(self, name, kind, default=None):
        value = self._values.get(name, default)
        if value is None and default is None:
            raise RefusedError(f"args.{name}: the checkpoint does not have it")
        if type(value) is not kind:
            raise RefusedError(f"args.{name}: expected {kind.__name__}, found {value!r}")
        return value

    def flag(self, name):
        return self.get(name, bool, False)

    def activation(self, name):
        value = self.get(name, str)
        if value not in _ACTIVATIONS:
            raise RefusedError(f"args.{name}: {value!r} is none of {', '.join(_ACTIVATIONS)}")
        return value

    def quantised(self):
        return any(self._values.get(name) for name in ("quant_noise_pq", "quant_noise_scalar"))


def rename(name, bert):
    """Today's name of a tensor that older revisions spelled otherwise."""
    if bert and name.startswith("decoder."):
        name = "encoder." + name.removeprefix("decoder.")
    old = re.fullmatch(r"(.*layers\.\d+\.)layer_norms\.(\d)(\..*)", name)
    if old:
        norms = _OLD_NORMS[name.split(".", 1)[0]]
        return f"{old[1]}{norms[int(old[2])]}_layer_norm{old[3]}"
    return name


def shape(tensors, name, axes):
    if name not in tensors:
        raise RefusedError(f"no tensor {name!r}")
    found = tensors[name].shape
    if len(found) != axes:
        raise RefusedError(f"tensor {name!r} has the shape {list(found)}, expected {axes} axes")
    return found


def common(tensors, options, prefix, projected):
    """Keys of every encoder. `prefix` of its tensors, `projected`: the option with l."""
    vocab, width = shape(tensors, prefix + "embed_tokens.weight", 2)
    rows, _ = shape(tensors, prefix + "projected_embeddings", 2)
    for name, found in (("encoder_embed_dim", width), (projected, rows)):
        if options.get(name, int) != found:
            raise RefusedError(f"args.{name} is {options.get(name, int)}, the tensors have {found}")
    stored = prefix + "layers.0.self_attn."
    return {
        "model_type": "luna",
        "vocab_size": vocab,
        "hidden_size": width,
        "ffn_size": options.get("encoder_ffn_embed_dim", int),
        "num_layers": options.get("encoder_layers", int),
        "num_heads": options.get("encoder_attention_heads", int),
        "proj_len": rows,
        "tie_kv": stored + "pc_proj.weight" in tensors,
        "norm_position": "post",
        "activation": options.activation("activation_fn"),
        "pad_token_id": 1,
        "eos_token_id": 2,
    }


def lra(tensors, options):
    config = common(tensors, options, "encoder.encoder.", "encoder_projection_length")
    if "classifier.0.weight" not in tensors:
        raise RefusedError("no tensor 'classifier.0.weight': written by the code of 2023, whose "
                           "Luna models cannot run; the code of 2021 defines them")
    outputs, features = shape(tensors, "classifier.0.weight", 2)
    labels, _ = shape(tensors, "sentence_projection_layer.weight", 2)
    pair = features == 2 * config["hidden_size"]
    pooling = "mean" if options.get("sen_rep_type", str, "cls") == "mp" else "cls"
    config |= {
        "architectures": [f"LunaForSequence{'Pair' if pair else ''}Classification"],
        "head": "lra_matching" if pair else "lra_classifier",
        "tie_layer_weights": options.flag("tie_layer_weights"),
        "embedding_layer_norm": options.flag("encoder_normalize_before"),
        "position_type": "learned",
        "max_positions": options.get("max_positions", int),
        "pooling": "proj_mean" if options.flag("use_p") else pooling,
        "classifier_in_dim": features,
        "classifier_out_dim": outputs,
        "classifier_layers": options.get("classifier_layers", int, 1),
        "classifier_activation": options.activation("classifier_activation_fn"),
        "cls_token_id": config["vocab_size"] - 1,
        "num_labels": labels,
    }
    return config, luna_names.lra(config)


def heads_of(tensors):
    """{name: (labels, inner width)}"""
    heads = {}
    for name in tensors:
        part = re.fullmatch(r"classification_heads\.([^.]+)\.dense\.weight", name)
        if part:
            labels, inner = shape(tensors, f"classification_heads.{part[1]}.out_proj.weight", 2)
            heads[part[1]] = (labels, inner)
    return heads


def bert(tensors, options, head):
    config = common(tensors, options, "encoder.sentence_encoder.", "projection_length")
    heads = heads_of(tensors)
    if head is not None and head not in heads:
        raise RefusedError(f"--head {head}: the checkpoint has {', '.join(sorted(heads)) or 'none'}")
    config |= {
        "architectures": ["LunaForSequenceClassification" if head else "LunaForMaskedLM"],
        "head": "sequence_classification" if head else "masked_lm",
        "dynamic_projection": not options.flag("fix_projection_length"),
        "embedding_layer_norm": True,
        "position_type": "learned",
        "max_positions": options.get("max_positions", int),
        "tie_word_embeddings": not options.flag("untie_weights_luna"),
        "bos_token_id": 0,
        "mask_token_id": config["vocab_size"] - 1,
    }
    if head:
        config |= {"classification_head": head, "num_labels": heads[head][0],
                   "pooler_activation": options.activation("pooler_activation_fn")}
    return config, luna_names.bert(config, heads)


def translation(tensors, options, causal_activation):
    config = common(tensors, options, "encoder.", "projection_length")
    vocab, width = shape(tensors, "decoder.embed_tokens.weight", 2)
    if options.get("decoder_output_dim", int, width) != width:
        raise RefusedError("args.decoder_output_dim: another width than the decoder's is not served")

    def positions(side):
        if options.flag("no_token_positional_embeddings"):
            return "none"
        return "learned" if options.flag(f"{side}_learned_pos") else "sinusoidal"

    def norms(side):
        return "pre" if options.flag(f"{side}_normalize_before") else "post"

    shared = options.flag("share_all_embeddings")
    config |= {
        "architectures": ["LunaForConditionalGeneration"],
        "head": "translation",
        "num_proj_heads": options.get("encoder_projected_attention_heads", int),
        "dynamic_projection": not options.flag("fix_projection_length"),
        "norm_position": norms("encoder"),
        "embedding_layer_norm": options.flag("layernorm_embedding"),
        "position_type": positions("encoder"),
        "max_positions": options.get("max_source_positions", int, 1024),
        "embed_scale": 1.0 if options.flag("no_scale_embedding") else width**0.5,
        "causal_activation": causal_activation,
        "decoder_vocab_size": vocab,
        "decoder_layers": options.get("decoder_layers", int),
        "decoder_ffn_size": options.get("decoder_ffn_embed_dim", int),
        "decoder_heads": options.get("decoder_attention_heads", int),
        "decoder_proj_heads": options.get("decoder_projected_attention_heads", int),
        "decoder_norm_position": norms("decoder"),
        "decoder_position_type": positions("decoder"),
        "decoder_max_positions": options.get("max_target_positions", int, 1024),
        "share_all_embeddings": shared,
        "share_decoder_input_output_embed": shared or options.flag("share_decoder_input_output_embed"),
        "bos_token_id": 0,
        "decoder_start_token_id": 2,
    }
    return config, luna_names.translation(config)


def describe(tensors, options, flags):
    """(config.json, {name: shape}) of the model that the names are of."""
    if options.quantised():
        raise RefusedError("args.quant_noise_pq: quantisation noise is not served")
    if any(name.startswith("encoder.encoder.") for name in tensors):
        return lra(tensors, options)
    if any(name.startswith("encoder.sentence_encoder.") for name in tensors):
        return bert(tensors, options, flags.head)
    if any(name.startswith("decoder.layers.0.encoder_attn.") for name in tensors):
        return translation(tensors, options, flags.causal_activation)
    raise RefusedError("the tensors are none of a Luna model")


def norm_gain(file, tensors):
    """How LayerNorm weights are stored: around one, or, from 2023 on, around zero."""
    total, count = 0.0, 0
    for name, tensor in tensors.items():
        kind = _FORMATS.get(tensor.storage.dtype.name)
        if not re.search(r"layer_?norm[^.]*\.weight$|layernorm_\w+\.weight$", name) or kind is None:
            continue
        data = torch_file.tensor_bytes(tensor, file.read_storage(tensor.storage))
        total += sum(struct.unpack(f"<{tensor.elements}{kind}", data))
        count += tensor.elements
    return "one_plus" if count and total / count < 0.5 else "direct"


def label_names(path, count):
    names = [name for name in fairseq_files.symbols(path) if not name.startswith("madeupword")]
    if len(names) != count:
        raise RefusedError(f"{path} has {len(names)} labels, the head has {count}")
    return {str(i): name for i, name in enumerate(names)}


def copy_dictionaries(config, flags):
    translates = config["head"] == "translation"
    fairseq_files.check_dictionary(flags.dictionary, config["vocab_size"], 0 if translates else 1)
    copies = {"dict.txt": flags.dictionary}
    if translates and flags.target_dictionary:
        fairseq_files.check_dictionary(flags.target_dictionary, config["decoder_vocab_size"])
        copies = {"dict.src.txt": flags.dictionary, "dict.tgt.txt": flags.target_dictionary}
    elif translates:
        fairseq_files.check_dictionary(flags.dictionary, config["decoder_vocab_size"])
    return copies


def renamed(state):
    is_bert = any("sentence_encoder." in name for name in state)
    return {rename(name, is_bert): tensor for name, tensor in state.items()}


def read_checkpoint(path):
    """(file with .tensors of `model` by today's names, options)"""
    file, found = fairseq_files.open_checkpoint(path, "args", renamed)
    if not isinstance(found, Namespace):
        raise RefusedError('no "args" with the options of the training: not written by fairseq 0.9')
    return file, Options(found)


def convert(flags):
    """Writes the directory; returns a line for the user."""
    pickle_to_safetensors.new_weights(flags.directory, flags.force)
    file, options = read_checkpoint(flags.checkpoint)
    config, wanted = describe(file.tensors, options, flags)
    fairseq_files.check_tensors(file.tensors, wanted, luna_names.optional(config))
    config["layer_norm_gain"] = norm_gain(file, file.tensors)
    if config["layer_norm_gain"] != "direct":
        print("warning: LayerNorm weights lie around zero: read as 1 + weight", file=sys.stderr)
    if flags.legacy_roles:
        config["legacy_proj_roles"] = True
    if flags.labels:
        config["id2label"] = label_names(flags.labels, config.get("num_labels", 0))
    copies = copy_dictionaries(config, flags)
    first = next(iter(file.tensors.values()))
    config["torch_dtype"] = fairseq_files.FLOATS[first.storage.dtype.name]
    tensors, ties = pickle_to_safetensors.collect_file(file)
    size = model_directory.write(flags.directory, tensors, ties, config)
    for name, source in copies.items():
        shutil.copyfile(source, flags.directory / name)
    return f"{flags.directory}: {config['architectures'][0]}, {len(tensors)} tensors, {size} bytes"


def main(arguments=None):
    parser = fairseq_files.parser(__doc__)
    parser.add_argument("--target-dictionary", type=pathlib.Path, help="of the decoder, if another")
    parser.add_argument("--labels", type=pathlib.Path, help="the label dictionary of a classifier")
    parser.add_argument("--head", help="the classification head of a RoBERTa-style model")
    parser.add_argument("--legacy-roles", action="store_true", help="pc_proj and c_proj swapped")
    parser.add_argument("--causal-activation", default="softplus_ln2",
                        choices=("softplus_ln2", "softplus", "elu1"))
    flags = parser.parse_args(arguments)
    return command_line.run(flags.checkpoint, lambda: convert(flags))


if __name__ == "__main__":
    sys.exit(main())
