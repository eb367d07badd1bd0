"""Longformer-base-4096 classification on a CUDA device beside HuggingFace there, in one run.

  python tests/bench/longformer_cuda_peers.py --batches 1,8 --length 4096
  python tests/bench/longformer_cuda_peers.py --check     small, on the CPU, without figures

Same random weights for all: Longview, HuggingFace eager and under torch.compile, bf16. Answers are
compared with HuggingFace's in fp32 before a ratio is printed. Beside the time stands the share of
the device's own matrix rate, measured in the same run, that Longview's multiply-adds amount to.
Needs `pip install torch==2.11.0 transformers==5.23.0` with CUDA, and build/bin/model_pipe.
"""

import argparse
import statistics
import sys
import tempfile
import time

import torch

import timing
from document_peers import TOLERANCE
from pipe import Ours
from published_shapes import Logits, build, padded

WIDTH, INNER, WINDOW = 768, 3072, 512


def multiply_adds(tokens, layers):
    """Work of a document with a global token: linears and visible pairs, not HF's chunks."""
    linears = tokens * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER)
    return layers * (linears + 2 * WIDTH * tokens * (WINDOW + 2))


def matrix_rate(size=8192, seconds=1.0):
    """bf16 multiply-adds per second of one large product."""
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    torch.mm(a, a)
    torch.cuda.synchronize()
    products, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(8):
            torch.mm(a, a)
        torch.cuda.synchronize()
        products += 8
    return products * size**3 / (time.perf_counter() - start)


def waited(function):
    def run():
        function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return run


def torch_device(arguments):
    return "cpu" if arguments.check else "cuda"


def compare(models, ours, batch, arguments, rate):
    device = torch_device(arguments)
    generator = torch.Generator().manual_seed(7)
    documents = [[0] + torch.randint(3, 50265, (arguments.length - 1,), generator=generator).tolist()
                 for _ in range(batch)]
    given = [x.to(device) for x in padded(documents)]
    truth = torch.cat([Logits(models["fp32"])(*[x.to(device) for x in padded([document])]).cpu()
                       for document in documents])
    peers = {"hf:eager": Logits(models["bf16"])}
    if not arguments.check:
        peers["hf:compile"] = torch.compile(peers["hf:eager"])
    print(f"\n{batch} x {arguments.length} tokens, {arguments.layers} layers")
    functions = timing.working({name: waited(lambda model=model: model(*given))
                                for name, model in peers.items()})
    functions["longview"] = lambda: float(ours.run(documents)["seconds"])
    errors = {name: float((model(*given).float().cpu() - truth).abs().max())
              for name, model in peers.items() if name in functions}
    errors["longview"] = float((torch.tensor(ours.run(documents)["logits"]) - truth).abs().max())
    if errors["longview"] > TOLERANCE["bf16"]:
        raise SystemExit(f"off by {errors['longview']:.1e}: no ratio for a wrong result")
    if arguments.check:
        print("  errors:", ", ".join(f"{name} {error:.1e}" for name, error in errors.items()))
        return
    times = timing.interleave(functions, arguments.repeats, warmup=3)
    for name, values in times.items():
        print(f"  {name:12} {timing.spread(values)}  error {errors[name]:.1e}")
    mine = statistics.median(times["longview"])
    share = batch * multiply_adds(arguments.length, arguments.layers) / mine / rate
    ratios = [f"{statistics.median(times[name]) / mine:.2f}x {name}"
              for name in times if name != "longview"]
    print(f"  longview is faster by: {', '.join(ratios)}; {share:.0%} of the matrix rate")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--device", default="cuda:0", help="of Longview; HuggingFace takes the first")
    parser.add_argument("--check", action="store_true", help="results on the CPU, nothing timed")
    arguments = parser.parse_args()
    if arguments.check:
        arguments.layers, arguments.length, arguments.batches = 1, 600, "2"
        arguments.device = "cpu"
    elif not torch.cuda.is_available():
        sys.exit("needs a CUDA device; there is none here (--check runs without)")
    torch.set_grad_enabled(False)
    device = torch_device(arguments)
    name = "the CPU" if arguments.check else torch.cuda.get_device_name(0)
    print(f"{name}; {timing.machine()}")
    print(timing.versions("torch", "transformers"))
    models = {"fp32": build(layers=arguments.layers).to(device),
              "bf16": build(layers=arguments.layers).to(torch.bfloat16).to(device)}
    with tempfile.TemporaryDirectory() as directory:
        models["fp32"].save_pretrained(directory)
        ours = Ours(directory, "bf16", 2, arguments.device)
    print(ours.facts["ready"], "on", ours.facts["device"])
    rate = None if arguments.check else matrix_rate()
    if rate:
        print(f"matrix rate {2 * rate / 1e12:.0f} TFLOP/s in bf16")
    for batch in arguments.batches.split(","):
        compare(models, ours, int(batch), arguments, rate)
    ours.close()


if __name__ == "__main__":
    main()
