#!/usr/bin/env python3
"""Makes a model directory from a checkpoint of the published Transformer-LS language model code.

    python3 models/convert/fairseq_transformer_ls.py checkpoint_best.pt dict.txt DIR \\
        --task enwik8 [--schedule blocks --block-len 256 --mem-len 32768]

The checkpoint is what fairseq's training writes; its `model` and `cfg` are used, optimizer and
training state are not. dict.txt is the dictionary of the preprocessed data: the checkpoint does
not hold it, and without it ids mean nothing. Every tensor must have the name and shape that the
configuration asks for; none is left out but the second copy of the tied embedding. Element types
stay as they are (fp16 from fp16 training, the frequencies of the positions too).

--schedule paper (the default) reads every finished segment in one form and nothing before the
text; blocks is what the published evaluation does, with its block and memory lengths.
Nothing in the pickle is run; PyTorch is not needed.
"""

import shutil
import sys

import command_line
import fairseq_files
import model_directory
import pickle_to_safetensors
import torch_file
from restricted_unpickler import RefusedError, Tensor

_PREFIX = "decoder.model."
_SIZES = ("d_model", "n_head", "d_inner", "n_layer", "window_len", "chunk_size", "chunk_rank")
_SWITCHES = ("use_bias", "pre_ln", "use_gelu")
_CLAMPS = ("clamp_len", "cpos_clamp_len")


def read_hyper_parameters(cfg):
    """config.json's keys from the checkpoint's cfg["model"]."""
    model = cfg.get("model") if isinstance(cfg, dict) else None
    if not isinstance(model, dict):
        raise RefusedError('the checkpoint has no "cfg" with a "model": not written by fairseq 1.0')
    found = {}
    for names, kind in ((_SIZES, int), (_SWITCHES, bool), (_CLAMPS, int)):
        for name in names:
            value = model.get(name)
            if type(value) is not kind:
                raise RefusedError(f"cfg.model.{name}: expected {kind.__name__}, found {value!r}")
            found[name] = value
    if any(found[name] < 1 for name in _SIZES):
        raise RefusedError("cfg.model: a size below 1")
    return found


def expected_shapes(shape, vocab):
    """{name without the prefix: shape} of everything but the tied copy of the embedding."""
    width, heads, inner = shape["d_model"], shape["n_head"], shape["d_inner"]
    columns, head = heads * shape["chunk_rank"], width // heads
    attention = {
        "dconv_1.weight": (columns, width),
        "dconv_1.bias": (columns,),
        "r_net.weight": (width, width),
        "r_net_chunk.weight": (width, width),
        "r_net_chunk.bias": (width,),
        "r_r_bias": (1, heads, 1, head),
        "r_w_bias": (1, heads, 1, 1, head),
    }
    for name in ("proj_query", "proj_key", "proj_val", "proj_out"):
        attention[name + ".weight"] = (width, width)
        if shape["use_bias"]:
            attention[name + ".bias"] = (width,)
    for name in ("dual_ln_dproj", "dual_ln_win"):
        attention[name + ".weight"] = attention[name + ".bias"] = (width,)
    layer = {"attn." + name: extent for name, extent in attention.items()}
    for name in ("norm1", "norm2"):
        layer[name + ".weight"] = layer[name + ".bias"] = (width,)
    layer |= {"ff.fc1.weight": (inner, width), "ff.fc1.bias": (inner,)}
    layer |= {"ff.fc2.weight": (width, inner), "ff.fc2.bias": (width,)}
    shapes = {"in_emb.weight": (vocab, width), "out_emb.bias": (vocab,)}
    shapes["pos_emb.inv_freq"] = (width // 2,)
    for i in range(shape["n_layer"]):
        shapes |= {f"layers.{i}.{name}": extent for name, extent in layer.items()}
    return shapes


def drop_tied_copy(file, tensors):
    """Removes out_emb.weight, which must hold the embedding."""
    first, second = _PREFIX + "in_emb.weight", _PREFIX + "out_emb.weight"
    if second not in tensors:
        return {}
    kept, copy = tensors[first], tensors.pop(second)

    def content(tensor):
        return torch_file.tensor_bytes(tensor, file.read_storage(tensor.storage))

    if kept != copy and content(kept) != content(copy):
        raise RefusedError(f"{first!r} and {second!r} differ, but this architecture ties them")
    return {second: first}


def make_config(shape, vocab, dtype, options):
    config = {"model_type": "transformer_ls", "architectures": ["TransformerLSForCausalLM"]}
    config |= {"vocab_size": vocab, **shape, "schedule": options.schedule}
    if options.schedule == "blocks":
        config |= {"block_len": options.block_len, "mem_len": options.mem_len}
        for name in ("block_len", "mem_len"):
            if config[name] is None or config[name] % shape["chunk_size"] != 0:
                raise RefusedError(
                    f"--{name.replace('_', '-')}: a multiple of {shape['chunk_size']} (chunk_size) "
                    f"is needed with --schedule blocks, found {config[name]}"
                )
    config["tokenizer"] = {"type": f"fairseq_{options.task}", "file": "dict.txt"}
    config["torch_dtype"] = fairseq_files.FLOATS[dtype]
    return config


def convert(options):
    """Writes the directory; returns a line for the user."""
    pickle_to_safetensors.new_weights(options.directory, options.force)
    file, cfg = fairseq_files.open_checkpoint(options.checkpoint, "cfg")
    shape = read_hyper_parameters(cfg)
    tensors = dict(file.tensors)
    embedding = tensors.get(_PREFIX + "in_emb.weight")
    if not isinstance(embedding, Tensor) or len(embedding.shape) != 2:
        raise RefusedError(f"no tensor {_PREFIX}in_emb.weight of two dimensions")
    vocab = embedding.shape[0]
    wanted = {_PREFIX + name: extent for name, extent in expected_shapes(shape, vocab).items()}
    fairseq_files.check_tensors(tensors, wanted,
                          {_PREFIX + "out_emb.weight": (vocab, shape["d_model"])})
    fairseq_files.check_dictionary(options.dictionary, vocab)
    config = make_config(shape, vocab, embedding.storage.dtype.name, options)
    ties = drop_tied_copy(file, tensors)
    kept = {name: (file, tensor) for name, tensor in tensors.items()}
    size = model_directory.write(options.directory, kept, ties, config)
    shutil.copyfile(options.dictionary, options.directory / "dict.txt")
    return f"{options.directory}: {len(tensors)} tensors, {size} bytes, {vocab} ids"


def main(arguments=None):
    parser = fairseq_files.parser(__doc__)
    parser.add_argument("--task", choices=("enwik8", "text8"), required=True)
    parser.add_argument("--schedule", choices=("paper", "blocks"), default="paper")
    parser.add_argument("--block-len", type=int, help="tokens of a block (blocks)")
    parser.add_argument("--mem-len", type=int, help="tokens of memory (blocks)")
    options = parser.parse_args(arguments)
    return command_line.run(options.checkpoint, lambda: convert(options))


if __name__ == "__main__":
    sys.exit(main())
