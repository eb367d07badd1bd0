"""Compares fast.py with model.py: logits and gradients of random weights, in fp32.

    python check_fast.py

Exit status 1 if a difference is more than 1e-4 of the largest number of its kind.
"""
import sys

import torch

import fast
import model as architecture

TEXTS, LENGTH = 2, 512


def relative(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


def main():
    torch.manual_seed(1)
    model = fast.silence(architecture.TransformerLS(architecture.Config()).initialize())
    for name, parameter in model.named_parameters():
        if name.endswith(("r_r_bias", "r_w_bias", "r_net_chunk.bias")):
            torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(0, model.config.vocab_size, (TEXTS, LENGTH))
    plan = fast.Plan(model.config, model.inv_freq)
    both = model(ids), fast.logits(model, plan, ids)
    exact, quick = (torch.autograd.grad(logits.square().mean(), list(model.parameters())) for logits in both)
    worst = {"logits": relative(both[1], both[0])}
    for (name, parameter), a, b in zip(model.named_parameters(), quick, exact):
        if "r_net" in name and parameter.dim() == 2:  # columns that stay zero have no gradient in fast.py
            a, b = a[:, parameter.any(0)], b[:, parameter.any(0)]
        if not name.endswith("dconv_1.bias"):  # A softmax does not see it: both gradients are rounding.
            worst[name] = relative(a, b)
    name = max(worst, key=worst.get)
    print(f"logits: {worst['logits']:.1e}; worst of all: {name}, {worst[name]:.1e}")
    sys.exit(worst[name] > 1e-4)


if __name__ == "__main__":
    main()
