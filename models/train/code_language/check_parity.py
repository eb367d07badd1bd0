"""Compares the training forward pass with HuggingFace's own on random documents.

    python check_parity.py [MODEL_DIRECTORY]

Without a directory: a freshly initialised model with large weights, so that attention is far
from uniform. Exit status 1 if a logit differs by more than 1e-4.
"""
import sys

import torch
import transformers

import fast_forward
import model as architecture

LENGTHS = [1, 2, 63, 64, 65, 130, 700, 4096]


def load():
    if len(sys.argv) > 1:
        return transformers.LongformerForSequenceClassification.from_pretrained(
            sys.argv[1], dtype=torch.float32)
    torch.manual_seed(0)
    model = architecture.build(512)
    for name, parameter in model.named_parameters():
        if "LayerNorm" not in name:
            torch.nn.init.normal_(parameter, std=0.08)
    return model


@torch.no_grad()
def main():
    model = load().eval()
    generator = torch.Generator().manual_seed(1)
    padded = architecture.MAX_LENGTH
    worst = 0.0
    for n in LENGTHS:
        ids = torch.full((1, padded), 1)
        ids[0, :n] = torch.randint(4, model.config.vocab_size - 1, (n,), generator=generator)
        ids[0, 0] = 0
        mask = (ids != 1).long()
        theirs = model(input_ids=ids, attention_mask=mask).logits
        ours = fast_forward.logits(model, ids, torch.tensor([n]), torch.arange(padded)[None] + 2)
        worst = max(worst, (theirs - ours).abs().max().item())
        print(f"{n} tokens: largest difference {(theirs - ours).abs().max().item():.2e}, "
              f"largest logit {theirs.abs().max().item():.2f}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
