"""Decoding with the projection cache beside full caches in PyTorch, in one run.

  python tests/bench/lm_decode_peers.py --contexts 8192,32768 --batch 1

Peers are GPT-2-style decoders of the same size (30 layers, d 512, 8 heads, f 2048):

  loop     the least that PyTorch can do: a preallocated cache and scaled_dot_product_attention
  dynamic  transformers' GPT2LMHeadModel with its DynamicCache
  static   the same with its StaticCache

Caches are filled with random numbers. The peers must give the same logits on a short text before
anything is timed; lm_decode_bench checks itself. Ours and every peer take turns, `--rounds` times.
Needs `pip install torch==2.11.0 transformers==5.23.0`, and build/bin/lm_decode_bench.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, StaticCache

import timing

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADS, WIDTH, VOCAB = 8, 512, 208
HEAD_DIM = WIDTH // HEADS
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+(fp32|bf16)\s+projection\s+([\d.]+) ms")


class Loop:
    """One token per step over caches that were allocated once."""

    def __init__(self, model, batch, context, steps):
        self.model, self.batch, self.at = model, batch, 0
        shape = (batch, HEADS, context + steps, HEAD_DIM)
        self.keys = [torch.zeros(shape, dtype=model.dtype) for _ in model.transformer.h]
        self.values = [torch.zeros(shape, dtype=model.dtype) for _ in model.transformer.h]

    def fill(self, context):
        for cache in self.keys + self.values:
            cache.normal_()
        self.at = context

    def step(self, ids):
        base, end = self.model.transformer, self.at + 1
        x = base.wte(ids) + base.wpe(torch.tensor([self.at]))
        for layer, block in enumerate(base.h):
            attention = block.attn
            fused = F.linear(block.ln_1(x), attention.c_attn.weight.T, attention.c_attn.bias)
            query, key, value = fused.view(self.batch, 3, HEADS, 1, HEAD_DIM).unbind(1)
            self.keys[layer][:, :, self.at:end] = key
            self.values[layer][:, :, self.at:end] = value
            mixed = F.scaled_dot_product_attention(query, self.keys[layer][:, :, :end],
                                                   self.values[layer][:, :, :end])
            mixed = mixed.reshape(self.batch, WIDTH)
            x = x + F.linear(mixed, attention.c_proj.weight.T, attention.c_proj.bias)
            inner = F.linear(block.ln_2(x), block.mlp.c_fc.weight.T, block.mlp.c_fc.bias)
            inner = F.gelu(inner, approximate="tanh")
            x = x + F.linear(inner, block.mlp.c_proj.weight.T, block.mlp.c_proj.bias)
        self.at = end
        return self.model.lm_head(base.ln_f(x))


class HuggingFace:
    """GPT2LMHeadModel over one of transformers' caches."""

    def __init__(self, model, batch, cache):
        self.model, self.batch, self.at, self.cache = model, batch, 0, cache

    def step(self, ids):
        out = self.model(input_ids=ids[:, None], past_key_values=self.cache, use_cache=True,
                         position_ids=torch.full((self.batch, 1), self.at))
        self.at += 1
        return out.logits[:, -1]


class Dynamic(HuggingFace):
    def __init__(self, model, batch, context, steps):
        del context, steps
        super().__init__(model, batch, DynamicCache(config=model.config))

    def fill(self, context):
        shape = (self.batch, HEADS, context, HEAD_DIM)
        for layer in range(self.model.config.n_layer):
            self.cache.update(torch.randn(shape, dtype=self.model.dtype),
                              torch.randn(shape, dtype=self.model.dtype), layer)
        self.at = context


class Static(HuggingFace):
    def __init__(self, model, batch, context, steps):
        super().__init__(model, batch, StaticCache(config=model.config,
                                                   max_cache_len=context + steps))

    def fill(self, context):
        self.step(torch.zeros(self.batch, dtype=torch.long))  # Makes the tensors.
        for layer in self.cache.layers:
            layer.keys.normal_()
            layer.values.normal_()
            layer.cumulative_length.fill_(context)
        self.at = context


PEERS = {"loop": Loop, "dynamic": Dynamic, "static": Static}


def build(layers, longest):
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=WIDTH, n_head=HEADS, vocab_size=VOCAB,
                                      n_positions=longest, bos_token_id=0, eos_token_id=0)).eval()


def check_peers(model):
    """All peers read the same short text."""
    peers = {name: peer(model, 2, 0, 8) for name, peer in PEERS.items()}
    for token in range(8):
        ids = torch.tensor([token * 7 % VOCAB, token * 11 % VOCAB])
        logits = {name: peer.step(ids) for name, peer in peers.items()}
        for name, values in logits.items():
            worst = float((values - logits["loop"]).abs().max())
            if worst > 1e-3:
                sys.exit(f"{name} and loop differ by {worst:.3g}")


def time_peer(kind, model, batch, context, steps):
    """Seconds of a step, each."""
    peer = PEERS[kind](model, batch, context, steps + 2)
    peer.fill(context)
    ids = torch.full((batch,), 5)
    return timing.interleave({kind: lambda: peer.step(ids)}, steps)[kind]


def time_ours(args, context):
    """Seconds of a step, by type: medians of that run."""
    out = subprocess.run(
        [ROOT / "build/bin/lm_decode_bench", "--full=false", f"--context={context}",
         f"--batch={args.batch}", f"--layers={args.layers}", f"--threads={args.threads}",
         f"--dtypes={args.dtypes}"],
        check=True, capture_output=True, text=True).stdout
    print(out, end="")
    found = [ROW.match(line) for line in out.splitlines()]
    return {f"ours:{match[3]}": [float(match[4]) / 1e3] for match in found if match}


def run_context(args, model, context):
    seconds = {}
    for _ in range(args.rounds):
        timing.wait_for_quiet()
        found = time_ours(args, context)
        for name in args.peers.split(","):
            kind, dtype = name.split(":")
            found[name] = time_peer(kind, model.to(DTYPES[dtype]), args.batch, context, args.steps)
            model.to(torch.float32)
        for name, values in found.items():
            seconds.setdefault(name, []).extend(values)
    for name, values in seconds.items():
        print(f"{context:7d} {args.batch:3d}  {name:12s} {timing.spread(values)}")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    best = min((name for name in medians if not name.startswith("ours")), key=medians.get)
    for name in medians:
        if name.startswith("ours"):
            print(f"{context:7d} {args.batch:3d}  {name}: {medians[best] / medians[name]:.2f} "
                  f"times the tokens per second of the fastest peer ({best})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contexts", default="8192,32768")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="of a peer in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtypes", default="fp32,bf16", help="of our runs")
    parser.add_argument("--peers",
                        default="loop:fp32,dynamic:fp32,static:fp32,loop:bf16,dynamic:bf16")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    contexts = [int(context) for context in args.contexts.split(",")]
    model = build(args.layers, max(contexts) + args.steps + 8)
    check_peers(model)
    print(timing.machine(), timing.versions("torch", "transformers"), sep="\n")
    for context in contexts:
        run_context(args, model, context)


if __name__ == "__main__":
    main()
