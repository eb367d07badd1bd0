"""A directory from which transformers' AutoTokenizer reads the tokenizer of `code-lm`: a token for each byte."""

import json

FIRST = "<s>"  # Begins and ends texts; 256, as config.json of the model has it.


def letters():
    """The 256 characters that stand for bytes in a byte-level vocabulary: printable ones for themselves."""
    spare = iter(range(256, 512))
    plain = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    return [chr(byte if byte in plain else next(spare)) for byte in range(256)]


def write(folder):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocabulary = {letter: byte for byte, letter in enumerate(letters())}
    first = {"id": 256, "content": FIRST, "special": True, "normalized": False, "lstrip": False, "rstrip": False,
             "single_word": False}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [first], "normalizer": None,
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": FIRST, "eos_token": FIRST, "pad_token": FIRST,
        "model_max_length": 131072, "clean_up_tokenization_spaces": False}))
    return folder
