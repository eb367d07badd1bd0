"""Writes the trained model as a HuggingFace directory with fp16 weights.

    python export.py --work DIR [--out models/zoo/code-language]
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers

import model as architecture

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo" / "code-language"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=ZOO)
    options = parser.parse_args()
    tokenizer_files = ("tokenizer.json", "tokenizer_config.json")
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.work / "model")
    model = architecture.build(len(tokenizer))
    saved = torch.load(options.work / "checkpoint.pt")
    model.load_state_dict(saved["model"])
    options.out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(options.out)
    for name in tokenizer_files:
        shutil.copy(options.work / "model" / name, options.out / name)
    # Compact: nobody reads the merges line by line.
    path = options.out / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False,
                               separators=(",", ":")) + "\n")
    (options.out / "model.safetensors").chmod(0o644)
    size = sum(p.stat().st_size for p in options.out.iterdir()) / 1e6
    print(f"{options.out}: step {saved['step']}, {size:.1f} MB")


if __name__ == "__main__":
    main()
