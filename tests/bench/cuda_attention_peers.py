#!/usr/bin/env python3
"""Attention on a GPU beside what PyTorch users have: one process, the same tensors, in turns.

    python tests/bench/cuda_attention_peers.py            # the band, 4,096 and 16,384 tokens
    python tests/bench/cuda_attention_peers.py --decode   # projected cache against full cache
    python tests/bench/cuda_attention_peers.py --check    # both, small, without a GPU: no figures

Needs an NVIDIA GPU and `pip install torch==2.11.0` (with its CUDA packages). Band: every peer sees
w keys on either side (dense flash attention sees all). FlexAttention has a block mask and is
compiled; masked SDPA gets the same band as a boolean matrix. Decode: one query a sequence over the
last 512 keys and one projected key per 16 tokens, against SDPA and this project's kernel over all.

Each figure stands beside its largest difference to fp32 attention over the same (rounded) inputs; a
peer beyond the tolerance is an error. With --check the host stands in for the device. FLOP are
useful ones: 4 x pairs x dim. The GEMM and copy rates that shares refer to are measured in the same
run. L2 is overwritten between repeats.
"""

import argparse
import ctypes
import math
import pathlib
import statistics
import sys

import timing
from pipe import BUILD

TOLERANCE = {"bf16": 2e-2, "fp16": 4e-3}
DTYPE = {"bf16": 1, "fp16": 2}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--decode", action="store_true")
    parser.add_argument("--check", action="store_true", help="results on the CPU, nothing timed")
    parser.add_argument("--tokens", default=None, help="comma list")
    parser.add_argument("--batch", default=None, help="comma list of documents or sequences")
    parser.add_argument("--window", type=int, default=256, help="keys on either side")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--dtype", choices=DTYPE, default="bf16")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--times", type=int, default=10, help="launches a round")
    return parser.parse_args()


class Library:
    """This project's kernels in this process, on the first GPU or on the host as a stand-in."""

    def __init__(self, build, on_host, wait=lambda: None):
        self.wait = wait
        self.lib = ctypes.CDLL(str(build / "bin/longview_cuda_bench.so"))
        for name in ("lv_open", "lv_plan_band", "lv_plan_decode", "lv_run"):
            getattr(self.lib, name).restype = ctypes.c_char_p
        for name in ("lv_useful_pairs", "lv_executed_pairs", "lv_blocks"):
            getattr(self.lib, name).restype = ctypes.c_int64
        plugin = None if on_host else str(build / "bin/longview_cuda.so").encode()
        self.check(self.lib.lv_open(plugin))

    @staticmethod
    def check(error):
        if error is not None:
            raise RuntimeError(error.decode())

    def plan_band(self, *shape):
        self.check(self.lib.lv_plan_band(*shape))

    def plan_decode(self, *shape):
        self.check(self.lib.lv_plan_decode(*shape))

    def run(self, q, k, v, out, times):
        """Milliseconds of `times` launches, behind all that was handed to torch's stream before."""
        self.wait()
        elapsed = ctypes.c_float()
        pointers = [ctypes.c_void_p(x.data_ptr()) for x in (q, k, v, out)]
        self.check(self.lib.lv_run(*pointers, times, ctypes.byref(elapsed)))
        return elapsed.value


class Clock:
    """Times callables in turns, with a cold L2 before each."""

    def __init__(self, torch, times):
        self.torch, self.times = torch, times
        self.l2 = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def peer(self, run):
        torch = self.torch
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(self.times):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end)

    def in_turns(self, contenders, rounds):
        """{name: milliseconds of one launch, a list}; a contender returns the time of `times`."""
        found = {name: [] for name in contenders}
        for run in contenders.values():
            run()
        for _ in range(rounds):
            for name, run in contenders.items():
                self.l2.zero_()
                self.torch.cuda.synchronize()
                found[name].append(run() / self.times)
        return found


def torch_type(torch, args):
    return {"bf16": torch.bfloat16, "fp16": torch.float16}[args.dtype]


def device_of(args):
    return "cpu" if args.check else "cuda"


def gemm_rate(torch, clock, dtype):
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
    return 2 * 8192**3 / (min(clock.peer(lambda: a @ b) for _ in range(3)) / clock.times) / 1e9


def copy_rate(torch, clock):
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.numel() / (min(clock.peer(lambda: b.copy_(a)) for _ in range(3)) / clock.times) / 1e6


def band_reference(torch, q, k, v, window):
    """fp32, in blocks of queries; [documents, heads, tokens, dim]."""
    out = torch.empty_like(q, dtype=torch.float32)
    tokens = q.shape[2]
    for begin in range(0, tokens, 1024):
        end = min(begin + 1024, tokens)
        lo, hi = max(0, begin - window), min(tokens, end + window)
        scores = q[:, :, begin:end].float() @ k[:, :, lo:hi].float().transpose(-1, -2)
        distance = torch.arange(begin, end)[:, None] - torch.arange(lo, hi)[None, :]
        scores = scores / math.sqrt(q.shape[-1])
        scores.masked_fill_((distance.abs() > window).to(q.device), -math.inf)
        out[:, :, begin:end] = scores.softmax(-1) @ v[:, :, lo:hi].float()
    return out


def check(name, got, want, dtype):
    error = (got.float() - want).abs().max().item()
    if not error <= TOLERANCE[dtype]:
        sys.exit(f"{name} is off by {error:.2e}")
    return error


def report(title, times, errors, ours, flop=None, gemm=None):
    print(f"\n## {title}\n")
    print("| | ms (min .. max) | ratio | TFLOP/s useful | of GEMM | error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    base = statistics.median(times[ours])
    for name, values in times.items():
        middle = statistics.median(values)
        rate = flop / middle / 1e9 if flop else None
        share = f"{rate / gemm:.2f}" if flop and gemm else ""
        error = f"{errors[name]:.1e}" if name in errors else "another pattern"
        print(f"| {name} | {middle:.4f} ({min(values):.4f} .. {max(values):.4f}) | "
              f"{middle / base:.2f}x | {f'{rate:.0f}' if rate else ''} | {share} | {error} |")


def bench_band(args, torch, library, clock, documents, tokens, gemm):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    dtype, device = torch_type(torch, args), device_of(args)
    torch.manual_seed(0)
    rows = [torch.randn(documents * tokens, args.heads, args.dim, device=device, dtype=dtype)
            for _ in range(3)]
    q, k, v = (x.view(documents, tokens, args.heads, args.dim).transpose(1, 2) for x in rows)
    heads_first = [x.contiguous() for x in (q, k, v)]
    out = torch.zeros_like(rows[0])
    library.plan_band(documents, tokens, args.heads, args.dim, args.window, DTYPE[args.dtype])
    library.run(*rows, out, 1)

    index = torch.arange(tokens, device=device)
    mask = (index[:, None] - index[None, :]).abs() <= args.window
    blocks = create_block_mask(lambda b, h, i, j: (i - j).abs() <= args.window, None, None, tokens,
                               tokens, device=device)
    flex = flex_attention if args.check else torch.compile(flex_attention)

    def dense():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return sdpa(*heads_first)

    peers = {"FlexAttention": lambda: flex(*heads_first, block_mask=blocks),
             "SDPA with a mask": lambda: sdpa(*heads_first, attn_mask=mask)}
    peers = timing.working(peers)
    want = band_reference(torch, q, k, v, args.window)
    ours = out.view(documents, tokens, args.heads, args.dim).transpose(1, 2)
    errors = {"Longview": check("Longview", ours, want, args.dtype)}
    errors |= {name: check(name, run(), want, args.dtype) for name, run in peers.items()}
    if args.check:
        print(f"band, {documents} x {tokens} tokens, {args.dtype}: "
              + ", ".join(f"{name} {error:.1e}" for name, error in errors.items()))
        return
    contenders = {"Longview": lambda: library.run(*rows, out, args.times)}
    contenders |= {name: (lambda run=run: clock.peer(run)) for name, run in peers.items()}
    contenders |= timing.working({"dense flash": lambda: clock.peer(dense)})
    times = clock.in_turns(contenders, args.rounds)
    flop = 4 * library.lib.lv_useful_pairs() * args.dim
    report(f"{documents} x {tokens} tokens, {args.window} keys on either side", times, errors,
           "Longview", flop, gemm)
    waste = library.lib.lv_useful_pairs() / library.lib.lv_executed_pairs()
    print(f"\nOf the pairs computed here {waste:.2f} are asked for.")


def decode_reference(torch, q, k, v, counts):
    """One query over the first `counts` slots of each list of blocks, fp32."""
    scores = torch.einsum("bhd,bhnd->bhn", q.float(), k.float()) / math.sqrt(q.shape[-1])
    scores.masked_fill_(~counts[:, None, :], -math.inf)
    return torch.einsum("bhn,bhnd->bhd", scores.softmax(-1), v.float())


def run_decode(args, torch, library, sequences, tokens, window, segment):
    """(a timed run, error, bytes read)."""
    dtype, device = torch_type(torch, args), device_of(args)
    library.plan_decode(sequences, tokens, args.heads, args.dim, window, segment,
                        DTYPE[args.dtype])
    each = library.lib.lv_blocks() // sequences
    shape = (library.lib.lv_blocks(), args.heads, 64, args.dim)
    k, v = (torch.randn(shape, device=device, dtype=dtype) for _ in range(2))
    q = torch.randn(sequences, args.heads, args.dim, device=device, dtype=dtype)
    out = torch.zeros_like(q)
    library.run(q, k, v, out, 1)
    # Which slots are seen: projected keys of finished segments, then the window.
    last = tokens - 1
    pages = last // segment if segment else 0
    page_slots = -(-pages // 64) * 64
    first = max(0, last - window + 1)
    origin = first // 64 * 64
    slot = torch.arange(each * 64, device=device)
    position = slot - page_slots + origin
    seen = (slot < pages) | ((slot >= page_slots) & (position >= first) & (position <= last))
    flat = [x.view(sequences, each, args.heads, 64, args.dim).transpose(1, 2)
            .reshape(sequences, args.heads, each * 64, args.dim) for x in (k, v)]
    want = decode_reference(torch, q, *flat, seen.expand(sequences, -1))
    error = check("Longview", out, want, args.dtype)
    size = 2 * int(seen.sum()) * sequences * args.heads * args.dim * 2
    return (lambda: library.run(q, k, v, out, args.times)), error, size


def bench_decode(args, torch, library, clock, sequences, tokens, bandwidth):
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    caches = (("full cache", tokens, 0), ("projected cache", 512, 16))
    torch.manual_seed(0)
    if args.check:
        for name, window, segment in caches:
            error = run_decode(args, torch, library, sequences, tokens, window, segment)[1]
            print(f"decode, {sequences} x {tokens} tokens, {args.dtype}, {name}: {error:.1e}")
        return
    dtype = torch_type(torch, args)
    # One plan is held at a time, so the two caches are timed one after the other, each in turns with
    # the same peer: ratios go through it.
    q = torch.randn(sequences, args.heads, 1, args.dim, device="cuda", dtype=dtype)
    k, v = (torch.randn(sequences, args.heads, tokens, args.dim, device="cuda", dtype=dtype)
            for _ in range(2))
    print(f"\n## {sequences} sequences of {tokens} tokens\n")
    print("| | us (min .. max) | GB/s | of copy | to SDPA | error |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, window, segment in caches:
        run, error, size = run_decode(args, torch, library, sequences, tokens, window, segment)
        times = clock.in_turns({"ours": run, "SDPA": lambda: clock.peer(lambda: sdpa(q, k, v))},
                               args.rounds)
        middle = statistics.median(times["ours"])
        rate = size / middle / 1e6
        print(f"| {name} | {1e3 * middle:.1f} ({1e3 * min(times['ours']):.1f} .. "
              f"{1e3 * max(times['ours']):.1f}) | {rate:.0f} | {rate / bandwidth:.2f} | "
              f"{statistics.median(times['SDPA']) / middle:.2f}x | {error:.1e} |")


def numbers(text, default):
    return [int(x) for x in (text or default).split(",")]


def check_all(args, torch, library):
    """Band and decode at sizes that cross tiles, blocks and pieces of the plans."""
    for args.dtype in DTYPE:
        for tokens in numbers(args.tokens, "200"):
            for documents in numbers(args.batch, "2"):
                bench_band(args, torch, library, None, documents, tokens, None)
        for tokens in numbers(args.tokens, "700"):
            for sequences in numbers(args.batch, "2"):
                bench_decode(args, torch, library, None, sequences, tokens, None)


def main():
    args = parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("needs torch: pip install torch==2.11.0")
    if args.check:
        args.heads, args.window = 2, 70
        return check_all(args, torch, Library(args.build, on_host=True))
    if not torch.cuda.is_available():
        sys.exit("needs a CUDA device; there is none here (--check runs without)")
    library = Library(args.build, on_host=False, wait=torch.cuda.synchronize)
    clock = Clock(torch, args.times)
    gemm = gemm_rate(torch, clock, torch_type(torch, args))
    bandwidth = copy_rate(torch, clock)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {args.dtype}, {args.heads} "
          f"heads x {args.dim}; GEMM {gemm:.0f} TFLOP/s, copy {bandwidth:.0f} GB/s; medians of "
          f"{args.rounds} rounds of {args.times} launches\n\n    {' '.join(sys.argv)}")
    if args.decode:
        for tokens in numbers(args.tokens, "8192,32768,131072"):
            for sequences in numbers(args.batch, "1,8,32"):
                bench_decode(args, torch, library, clock, sequences, tokens, bandwidth)
        return
    for tokens in numbers(args.tokens, "4096,16384"):
        for documents in numbers(args.batch, "1,8"):
            bench_band(args, torch, library, clock, documents, tokens, gemm)


if __name__ == "__main__":
    main()
