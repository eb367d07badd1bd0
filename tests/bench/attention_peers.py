#!/usr/bin/env python3
"""Banded attention beside what PyTorch users have: one run, same shape, same threads.

    python tests/bench/attention_peers.py --bench build/bin/attention_bench --threads 1

Needs torch; Hugging Face's sliding chunks need transformers. Peers: FlexAttention with a block
mask (compiled), Longformer's sliding chunks as LongformerSelfAttention runs them, dense scaled
dot product attention. Every peer and this project's kernels see the same pattern (w keys on
either side, no global token) and take turns round by round, so that a busy minute meets all of
them. A peer whose result differs from the masked dense attention is left out.

With one thread the figures are CPU seconds of the computing process, which other load hardly
changes; with more, wall seconds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

TOLERANCE = {"fp32": 2e-4, "bf16": 6e-2}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="build/bin/attention_bench")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--window", type=int, default=256, help="keys on either side")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def flex_peer(args, inputs):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def seen(batch, head, query, key):
        return (query - key).abs() <= args.window

    mask = create_block_mask(seen, None, None, args.tokens, args.tokens, device="cpu")
    compiled = torch.compile(flex_attention)
    return lambda: compiled(*inputs, block_mask=mask)


def chunks_peer(args, inputs):
    """The local part of LongformerSelfAttention.forward, without projections."""
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    config = LongformerConfig(
        hidden_size=args.heads * args.dim,
        num_attention_heads=args.heads,
        attention_window=[2 * args.window],
    )
    layer = LongformerSelfAttention(config, layer_id=0)
    q, k, v = (x.transpose(1, 2).contiguous() for x in inputs)

    def run():
        scores = layer._sliding_chunks_query_key_matmul(q / args.dim**0.5, k, args.window)
        nothing_masked = torch.zeros(1, args.tokens, 1, 1, dtype=q.dtype)
        scores += layer._sliding_chunks_query_key_matmul(
            torch.ones_like(nothing_masked), nothing_masked, args.window
        )
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).type_as(scores)
        return layer._sliding_chunks_matmul_attn_probs_value(weights, v, args.window).transpose(1, 2)

    return run


def dense_peer(args, inputs):
    return lambda: F.scaled_dot_product_attention(*inputs)


PEERS = {
    "flex fp32": (flex_peer, "fp32"),
    "flex bf16": (flex_peer, "bf16"),
    "chunks fp32": (chunks_peer, "fp32"),
    "chunks bf16": (chunks_peer, "bf16"),
    "dense fp32": (dense_peer, "fp32"),
    "dense bf16": (dense_peer, "bf16"),
}


def build_peers(args):
    generator = torch.Generator().manual_seed(11)
    shape = (1, args.heads, args.tokens, args.dim)
    wide = [torch.randn(shape, generator=generator) for _ in range(3)]
    position = torch.arange(args.tokens)
    band = (position[:, None] - position[None, :]).abs() <= args.window
    expected = F.scaled_dot_product_attention(*wide, attn_mask=band)
    peers = {}
    for name, (make, dtype) in PEERS.items():
        inputs = wide if dtype == "fp32" else [x.to(torch.bfloat16) for x in wide]
        try:
            run = make(args, inputs)
            result = run()
        except Exception as error:  # noqa: BLE001 - any peer may be missing or fail to compile.
            print(f"{name}: left out, {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if make is not dense_peer:  # Dense attention computes another pattern, for scale.
            worst = float((result.float() - expected).abs().max())
            if not worst <= TOLERANCE[dtype]:
                print(f"{name}: left out, differs by {worst:.3g}", file=sys.stderr)
                continue
        peers[name] = run
    return peers


def time_peer(run, threads):
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.process_time() - cpu if threads == 1 else time.perf_counter() - wall


def time_ours(args):
    """Best of three runs per variant, each checked against the reference by the benchmark."""
    command = [
        args.bench,
        "--json=true",
        f"--tokens={args.tokens}",
        f"--window={args.window}",
        f"--heads={args.heads}",
        f"--dim={args.dim}",
        f"--threads={args.threads}",
        "--globals=0",
        "--repeats=3",
    ]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    key = "median_ms" if args.threads == 1 else "wall_ms"
    rows = [json.loads(line) for line in lines]
    return {f"ours {row['dtype']} {row['isa']}": row[key] * 1e-3 for row in rows}


def report(args, times):
    useful = 4 * args.dim * args.heads * sum(
        min(i, args.window) + 1 + min(args.tokens - 1 - i, args.window) for i in range(args.tokens)
    )
    clock = "CPU" if args.threads == 1 else "wall"
    print(
        f"T={args.tokens} w={args.window} heads={args.heads} dim={args.dim} "
        f"threads={args.threads} torch={torch.__version__}; {clock} ms, {args.rounds} rounds"
    )
    print(f"{'':24} {'best':>9} {'median':>9} {'GFLOP/s':>9}")
    for name, samples in sorted(times.items(), key=lambda item: statistics.median(item[1])):
        best, median = min(samples), statistics.median(samples)
        rate = "" if name.startswith("dense") else f"{useful / median * 1e-9:9.1f}"
        print(f"{name:24} {best * 1e3:9.2f} {median * 1e3:9.2f} {rate:>9}")
    print("\nratios of medians, peer / ours (lowest and highest round)")
    ours = {}
    for dtype in ("fp32", "bf16"):
        names = [name for name in times if name.startswith(f"ours {dtype}")]
        ours[dtype] = min(names, key=lambda name: statistics.median(times[name]))
    for name in ours.values():
        for peer in times:
            if peer.startswith("ours"):
                continue
            rounds = [a / b for a, b in zip(times[peer], times[name])]
            ratio = statistics.median(times[peer]) / statistics.median(times[name])
            print(f"{peer:12} / {name:20} {ratio:6.2f}  ({min(rounds):.2f} .. {max(rounds):.2f})")


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    peers = build_peers(args)
    times = {}
    for _ in range(args.rounds):
        for name, run in peers.items():
            times.setdefault(name, []).append(time_peer(run, args.threads))
        for name, seconds in time_ours(args).items():
            times.setdefault(name, []).append(seconds)
    report(args, times)


if __name__ == "__main__":
    main()
