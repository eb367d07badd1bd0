#!/usr/bin/env python3
"""Makes a directory of HuggingFace's form of an LED checkpoint of allenai/longformer.

    python3 models/convert/allenai_led.py SOURCE DIR

SOURCE is what LongformerEncoderDecoder saved before HuggingFace had the class: tensors are called
model.* instead of led.*, and both position tables begin with BART's two unused rows, which are cut.
config.json, pytorch_model.bin (or shards) and the tokenizer's files are read from it. Options that
LED does not have are refused by name. No PyTorch is needed, and nothing in the files is run.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import sys

import command_line
import model_directory
import pickle_to_safetensors
from restricted_unpickler import RefusedError

UNUSED_ROWS = 2
TABLES = {"led.encoder.embed_positions.weight": "max_encoder_position_embeddings",
          "led.decoder.embed_positions.weight": "max_decoder_position_embeddings"}
# Switches of BartConfig and of allenai's Longformer that LED is defined without.
NEUTRAL = {"add_bias_logits": False, "add_final_layer_norm": False, "normalize_before": False,
           "normalize_embedding": True, "scale_embedding": False,
           "static_position_embeddings": False, "extra_pos_embeddings": UNUSED_ROWS,
           "autoregressive": False}
MODES = ("sliding_chunks", "tvm")  # Two programs for the same attention.
DROPPED = {*NEUTRAL, "attention_dilation", "attention_mode", "gradient_checkpointing",
           "num_hidden_layers", "max_position_embeddings"}
TOKENIZER = ("vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json",
             "special_tokens_map.json", "added_tokens.json")


def led_config(given):
    """config.json as LEDConfig writes it."""
    for key, neutral in NEUTRAL.items():
        if given.get(key, neutral) != neutral:
            raise RefusedError(f"config.json: {key!r} is {given[key]!r}; LED has {neutral!r}")
    if given.get("attention_mode", MODES[0]) not in MODES:
        raise RefusedError(f"config.json: 'attention_mode' is {given['attention_mode']!r}; LED has "
                           f"that of {' or '.join(MODES)}")
    if any(dilation != 1 for dilation in given.get("attention_dilation") or []):
        raise RefusedError(f"config.json: 'attention_dilation' is {given['attention_dilation']}; "
                           "LED has no dilation")
    windows = given.get("attention_window")
    if not isinstance(windows, list) or len(windows) != given.get("encoder_layers"):
        raise RefusedError(f"config.json: 'attention_window' is {windows!r}, expected one number of "
                           "tokens per encoder layer")
    for key in TABLES.values():
        if not isinstance(given.get(key), int):
            raise RefusedError(f"config.json: {key!r} is {given.get(key)!r}, expected a number")
    config = {key: value for key, value in given.items() if key not in DROPPED}
    # allenai counts the tokens to one side, LED those to both.
    return config | {"model_type": "led", "architectures": ["LEDForConditionalGeneration"],
                     "attention_window": [2 * one_sided for one_sided in windows]}


def led_name(name):
    return "led." + name.removeprefix("model.") if name.startswith("model.") else name


def without_unused_rows(name, tensor, rows):
    """The table without BART's first two rows."""
    if len(tensor.shape) != 2 or tensor.shape[0] != rows + UNUSED_ROWS:
        raise RefusedError(f"{name}: shape {list(tensor.shape)}, expected {rows} positions and "
                           f"{UNUSED_ROWS} unused rows in front of them")
    return dataclasses.replace(tensor, offset=tensor.offset + UNUSED_ROWS * tensor.strides[0],
                               shape=(rows, tensor.shape[1]))


def led_tensors(tensors, config):
    renamed = {led_name(name): entry for name, entry in tensors.items()}
    for name, key in TABLES.items():
        if name not in renamed:
            raise RefusedError(f"no tensor 'model.{name.removeprefix('led.')}': not a file of "
                               "LongformerEncoderDecoder")
        file, tensor = renamed[name]
        renamed[name] = (file, without_unused_rows(name, tensor, config[key]))
    return renamed


def convert(source, out):
    try:
        given = json.loads((source / "config.json").read_text("utf-8"))
    except ValueError as error:
        raise RefusedError(f"config.json: {error}") from error
    config = led_config(given)
    tensors, ties = pickle_to_safetensors.collect(pickle_to_safetensors.find_weights(source))
    tensors = led_tensors(tensors, config)
    ties = {led_name(name): led_name(kept) for name, kept in ties.items()}
    size = model_directory.write(out, tensors, ties, config)
    for name in TOKENIZER:
        if (source / name).exists():
            shutil.copyfile(source / name, out / name)
    return f"{out}: {len(tensors)} tensors, {size} bytes"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args(arguments)
    return command_line.run(options.source, lambda: convert(options.source, options.directory))


if __name__ == "__main__":
    sys.exit(main())
