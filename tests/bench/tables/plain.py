"""The same weights in plain PyTorch, so that no time of a wrong answer is printed."""

import importlib
import importlib.util
import json
import pathlib

# Written out beside this folder; all other families are transformers' classes.
WRITTEN = {"luna": "plain_luna", "cst": "plain_cst", "transformer_ls": "plain_transformer_ls_text"}
DILATED = "plain_longformer"  # What transformers' Longformer lacks.
TOLERANCE = 2e-3  # Of the largest logit.


def installed(*names):
    """Whether these packages are there."""
    return all(importlib.util.find_spec(name) for name in names)


def available(options):
    return options.peers and installed("torch", "transformers", "safetensors")


def model(directory):
    """A function of token ids that returns logits [1, labels], of a tagger [1, tokens * labels]."""
    import torch
    from safetensors.torch import load_file

    torch.set_grad_enabled(False)
    given = json.loads((pathlib.Path(directory) / "config.json").read_text())
    name = DILATED if "attention_dilation" in given else WRITTEN.get(given["model_type"])
    if name:
        written = importlib.import_module(name)
        plain = written.Plain(given, load_file(pathlib.Path(directory) / "model.safetensors"))
        return lambda ids: plain(torch.tensor(ids))
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tags = given["architectures"][0].endswith("ForTokenClassification")
    heads = transformers.AutoModelForTokenClassification if tags else transformers.AutoModelForSequenceClassification
    found = heads.from_pretrained(directory, attn_implementation="eager").float().eval()
    return lambda ids: found(torch.tensor([ids])).logits.flatten(1)


def check(name, logits, truth):
    """Ends the run if an answer is off; both are lists of the same numbers."""
    largest = max(abs(value) for value in truth)
    off = max(abs(a - b) for a, b in zip(logits, truth, strict=True))
    if not off <= TOLERANCE * largest:
        raise SystemExit(f"{name} is off by {off:.1e} of {largest:.1e}: no time of a wrong answer")


def check_all(directories, ours, document):
    """Each model's answer about a document against the same weights here."""
    for name, directory in directories.items():
        check(name, ours[name].run([document])["logits"][0], model(directory)(document)[0].tolist())
