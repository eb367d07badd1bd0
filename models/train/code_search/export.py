"""Writes the trained model as a directory of sentence-transformers with 16-bit weights.

    python export.py --work DIR [--out models/zoo/code-search]
"""
import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

import model as architecture
import train_tokenizer

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo" / "code-search"
MOST_TOKENS = 16384
LIBRARY = "sentence_transformers.models."


def config(vocabulary):
    rotary = {"rope_type": "default", "rope_theta": architecture.THETA}
    return {
        "architectures": ["ModernBertModel"], "model_type": "modernbert", "dtype": "float16",
        "vocab_size": vocabulary, "hidden_size": architecture.HIDDEN,
        "intermediate_size": architecture.INNER, "num_hidden_layers": architecture.LAYERS,
        "num_attention_heads": architecture.HEADS, "hidden_activation": "gelu",
        "norm_eps": architecture.EPSILON, "norm_bias": False, "attention_bias": False, "mlp_bias": False,
        "layer_types": ["sliding_attention"] * architecture.LAYERS,
        "local_attention": architecture.WINDOW, "max_position_embeddings": MOST_TOKENS,
        "rope_parameters": {"full_attention": rotary, "sliding_attention": rotary},
        "attention_dropout": 0.0, "embedding_dropout": 0.0, "mlp_dropout": 0.0,
        "pad_token_id": 0, "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3,
    }


def files(vocabulary):
    """The small ones: {path: content}."""
    modules = ["Transformer", "Pooling", "Dense", "Normalize"]
    return {
        "config.json": config(vocabulary),
        "modules.json": [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{name}",
                          "type": LIBRARY + name} for i, name in enumerate(modules)],
        "1_Pooling/config.json": {"word_embedding_dimension": architecture.HIDDEN,
                                  "pooling_mode_mean_tokens": True, "include_prompt": True},
        "2_Dense/config.json": {"in_features": architecture.HIDDEN, "out_features": architecture.HIDDEN,
                                "bias": False,
                                "activation_function": "torch.nn.modules.linear.Identity"},
        "sentence_bert_config.json": {"max_seq_length": MOST_TOKENS, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "[Q]", "document": ""},
                                              "default_prompt_name": None,
                                              "similarity_fn_name": "cosine"},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "[CLS]",
                                  "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]",
                                  "mask_token": "[MASK]", "clean_up_tokenization_spaces": False,
                                  "model_max_length": MOST_TOKENS},
        # Weights in 16 bits are for size; answers are computed in 32.
        "longview.json": {"dtype": "fp32"},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=ZOO)
    options = parser.parse_args()
    saved = torch.load(options.work / "checkpoint.pt")
    tensors = {name: value.half().contiguous() for name, value in saved["model"].items() if name != "scale"}
    vocabulary = len(tensors["embeddings.tok_embeddings.weight"])
    assert vocabulary == train_tokenizer.VOCABULARY
    for name, content in files(vocabulary).items():
        path = options.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")
    save_file({"linear.weight": tensors.pop("dense.weight")}, options.out / "2_Dense/model.safetensors",
              {"format": "pt"})
    save_file(tensors, options.out / "model.safetensors", {"format": "pt"})
    tokenizer = json.loads((options.work / "tokenizer.json").read_text())
    # Compact: nobody reads the merges line by line.
    (options.out / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n")
    for path in options.out.rglob("*.safetensors"):
        path.chmod(0o644)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"{options.out}: step {saved['step']}, {size:,} bytes")


if __name__ == "__main__":
    main()
