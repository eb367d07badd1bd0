"""Writes the cooled model as a served directory with fp16 weights.

    python export.py --work DIR [--out models/zoo/code-lm]
"""
import argparse
import json
import pathlib

import safetensors.torch
import torch

import documents
import model as architecture

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo" / "code-lm"


def settings_of(config):
    """config.json; what `config` does not hold is fixed by the architecture of model.py."""
    return {
        "model_type": "transformer_ls", "architectures": ["TransformerLSForCausalLM"], **config,
        "use_bias": False, "pre_ln": True, "use_gelu": True,
        "schedule": "paper", "block_len": None, "mem_len": None, "zero_memory": "none",
        "bos_token_id": documents.BOUNDARY, "eos_token_id": documents.BOUNDARY,
        "torch_dtype": "float16", "tokenizer": {"type": "bytes", "offset": 0},
    }


GENERATION = {"bos_token_id": documents.BOUNDARY, "eos_token_id": documents.BOUNDARY,
              "do_sample": True, "temperature": 0.7, "top_p": 0.9, "max_new_tokens": 256}
# fp16 is how the file is stored, not what the model was trained to be computed in.
SERVING = {"dtype": "fp32"}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=ZOO)
    options = parser.parse_args()
    saved = torch.load(options.work / "code-lm" / "cooled.pt", map_location="cpu")
    model = architecture.TransformerLS(architecture.Config(**saved["config"]))
    model.load_state_dict(saved["model"])
    tensors = {"decoder.model." + name: tensor.half().contiguous()
               for name, tensor in model.state_dict().items() if name != "out_emb.weight"}
    options.out.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(tensors, options.out / "model.safetensors", {"format": "pt"})
    (options.out / "model.safetensors").chmod(0o644)
    write_json(options.out / "config.json", settings_of(saved["config"]))
    write_json(options.out / "generation_config.json", GENERATION)
    write_json(options.out / "longview.json", SERVING)
    parameters = sum(p.numel() for p in model.parameters())
    size = sum(p.stat().st_size for p in options.out.iterdir()) / 1e6
    print(f"{options.out}: step {saved['step']}, {parameters} parameters, {size:.1f} MB")


if __name__ == "__main__":
    main()
