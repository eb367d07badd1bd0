"""Writes a trained classifier as a directory that the server reads.

    python export.py FAMILY --task listops --work DIR [--out DIR/models/listops-FAMILY] [--half]
        [--limit SYMBOLS]

--limit refuses longer documents, for a model whose positions beyond it were never trained.
"""

import dataclasses
import json
import pathlib

import torch
from safetensors.torch import save_file

import grammar
import task as tasks


def word_tokenizer(vocabulary, unknown, limit, around=None):
    """tokenizer.json and its settings: symbols between white space."""
    special = [{"id": vocabulary[token], "content": token, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True}
               for token in vocabulary if token not in grammar.SYMBOLS]
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
                "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
                "post_processor": None, "decoder": None,
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown}}
    settings = {"model_max_length": limit, "unk_token": unknown}
    if around is not None:
        first, last = around
        document["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": first, "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": last, "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": first, "type_id": 0}},
                     {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": last, "type_id": 0}},
                     {"SpecialToken": {"id": last, "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 0}},
                     {"SpecialToken": {"id": last, "type_id": 0}}],
            "special_tokens": {token: {"id": token, "ids": [vocabulary[token]], "tokens": [token]}
                               for token in around}}
        settings |= {"bos_token": first, "cls_token": first, "eos_token": last, "sep_token": last}
    return document, settings


def tokenizer_files(family, task):
    """name -> content (JSON) or text. Longformer and Luna read bytes as ids only."""
    symbols = list(grammar.SYMBOLS)
    if task.name == "bytes":
        if family in ("longformer", "luna"):
            return {}
        return {"tokenizer_config.json": {"tokenizer_class": "LRAByteTokenizer", "byte_offset": 1,
                                          "pad_token_id": 0, "model_max_length": task.longest}}
    if family == "luna":
        return {"dict.txt": "".join(f"{symbol} 1\n" for symbol in symbols)}
    if family == "longformer":
        tokens = ["<s>", "<pad>", "</s>", "<unk>", *symbols]
        document, settings = word_tokenizer({token: i for i, token in enumerate(tokens)}, "<unk>",
                                            task.longest + 2, ("<s>", "</s>"))
        settings["pad_token"] = "<pad>"
    else:
        tokens = ["[PAD]", *symbols, "[UNK]"]
        document, settings = word_tokenizer({token: i for i, token in enumerate(tokens)}, "[UNK]",
                                            task.longest)
        settings["pad_token"] = "[PAD]"
    return {"tokenizer.json": document, "tokenizer_config.json": settings}


def export(saved, family, task, out, half, limit):
    out.mkdir(parents=True, exist_ok=True)
    config = dict(saved["config"])
    tensors = {name: (value.half() if half else value).contiguous()
               for name, value in saved["tensors"].items()}
    # Weights in 16 bits are for size; answers are computed as the server chooses.
    config["dtype"] = "float32"
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    if limit is not None:
        before, after = tasks.family(family).around(task)
        settings = {"max_tokens": len(before) + limit + len(after)}
        (out / "longview.json").write_text(json.dumps(settings) + "\n")
    for name, content in tokenizer_files(family, task).items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
        (out / name).write_text(text)
    return sum(path.stat().st_size for path in out.iterdir())


def main(arguments=None):
    parser = tasks.parser(__doc__)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--half", action="store_true", help="weights as fp16")
    parser.add_argument("--limit", type=int, help="symbols of the longest document taken")
    options = parser.parse_args(arguments)
    name = f"{options.task}-{options.family}"
    out = options.out or options.work / "models" / name
    task, _ = tasks.read(options.work, options.task)
    saved = torch.load(options.work / f"{name}.pt", weights_only=True)
    task = dataclasses.replace(task, longest=saved["longest"])
    size = export(saved, options.family, task, out, options.half, options.limit)
    print(f"{out}: step {saved['step']}, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
