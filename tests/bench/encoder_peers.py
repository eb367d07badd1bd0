"""Linear-attention text encoders: cost per token from 1K to 16K, beside the same model in plain PyTorch.

  python tests/bench/encoder_peers.py --family transformer_ls_text --lengths 1024,4096,16384

One document a run, random weights, both sides in the same run; answers are compared before a ratio
is printed. Needs `pip install torch==2.11.0 safetensors`, and build/bin/model_pipe.
"""

import argparse
import importlib
import json
import pathlib
import statistics
import sys
import tempfile

import torch
from safetensors.torch import save_file

import timing
from pipe import Ours

TOLERANCE = {"fp32": 1e-4, "bf16": 1e-1}


def compare(plain, ours, tokens, arguments):
    """Prints one length; returns dtype -> nanoseconds per token."""
    generator = torch.Generator().manual_seed(tokens)
    ids = torch.randint(4, 250, (tokens,), generator=generator)
    truth = plain(ids)
    functions = {"torch fp32": lambda: plain(ids)}
    shares = {dtype: [] for dtype in ours}
    for dtype, process in ours.items():
        error = float((torch.tensor(process.run([ids.tolist()])["logits"]) - truth).abs().max())
        if error > TOLERANCE[dtype]:
            raise SystemExit(f"{dtype} is off by {error:.1e}: no ratio for a wrong result")
        print(f"  {tokens} tokens, {dtype}: error {error:.1e}")

        def run(process=process, shares=shares[dtype]):
            answer = process.run([ids.tolist()])
            shares.append([answer[part] / answer["seconds"] for part in ("linears", "attention")])
            return float(answer["seconds"])
        functions[dtype] = run
    quiet = timing.wait_for_quiet()
    times = timing.interleave(functions, arguments.repeats)
    per_token = {}
    for name, values in times.items():
        median = statistics.median(values)
        ratio = statistics.median(times["torch fp32"]) / median
        per_token[name] = 1e9 * median / tokens
        print(f"  {name:12} {timing.spread(values)}  {per_token[name]:9.0f} ns/token  "
              f"{ratio:5.2f}x plain PyTorch")
        if name in shares:
            linears, attention = (statistics.median(part) for part in zip(*shares[name]))
            print(f"    linears {linears:.0%}, attention {attention:.0%}; with nothing but the "
                  f"linears: {ratio / linears:.2f}x")
    if not quiet:
        print("  OTHER LOAD on the machine: do not quote these figures")
    return per_token


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="transformer_ls_text")
    parser.add_argument("--lengths", default="1024,2048,4096,8192,16384",
                        type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--dtypes", default="fp32", help="of Longview")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    print(timing.machine())
    print(timing.versions("torch"))
    family = importlib.import_module(f"plain_{arguments.family}")
    given = family.config(arguments)
    tensors = family.weights(given, torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "config.json").write_text(json.dumps(given))
        save_file(tensors, directory / "model.safetensors")
        ours = {dtype: Ours(directory, dtype, arguments.threads)
                for dtype in arguments.dtypes.split(",")}
    print(f"{arguments.family}: {arguments.layers} layers, width {arguments.width}, "
          f"{arguments.threads} threads")
    found = [compare(family.Plain(given, tensors), ours, n, arguments) for n in arguments.lengths]
    for name in found[0]:
        costs = [f"{cost[name]:.0f}" for cost in found]
        print(f"{name}: ns/token over {arguments.lengths}: {', '.join(costs)}; last over first "
              f"{found[-1][name] / found[0][name]:.2f}")
    for process in ours.values():
        process.close()


if __name__ == "__main__":
    sys.exit(main())
