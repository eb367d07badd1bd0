"""Vision Longformer on a CUDA device beside its authors' code and timm's ViT-S there, in one run.

  git clone https://github.com/microsoft/vision-longformer
  git -C vision-longformer checkout c9ce386
  python tests/bench/vision_cuda_peers.py --vil vision-longformer --sizes 384,1024 --batches 1,8
  python tests/bench/vision_cuda_peers.py --vil vision-longformer --check    small, on the CPU,
                                                                             without figures

The same random weights for Longview in bf16 and the authors' code, eager and under torch.compile;
answers are compared with the authors' in fp32 on the CPU before a ratio is printed. On a device the
authors' attention asks for fp16 by itself, so their 16 bits are fp16 and their fp32 is mixed.
GFLOP/s are of PyTorch's count of the authors' pass. Longview's time has the way of pixels to the
device in it, theirs begins with pixels there. Needs what vision_peers.py needs, with CUDA.
"""

import argparse
import copy
import os
import pathlib
import tempfile

import torch

import timing
from longformer_cuda_peers import matrix_rate, waited
from pipe import Ours
from vision_peers import (TOLERANCE, VIT, architecture, authors_model, flops, report, sides,
                          vit_peer, write_directory)


def peers(model, size, x, arguments):
    """name -> (function returning logits, FLOP of a pass); the model and x lie on the device."""
    work = flops(model, x)
    eager, half = copy.deepcopy(model).half(), x.half()
    found = {"authors:fp32": (lambda: model(x), work), "authors:fp16": (lambda: eager(half), work)}
    if not arguments.check:
        compiled = torch.compile(eager)
        found["authors:fp16 compiled"] = (lambda: compiled(half), work)
    vit = vit_peer(size).to(x.device)
    vit_work = flops(vit, x)
    vit, rounded = vit.bfloat16(), x.bfloat16()
    found[f"timm {VIT}:bf16"] = (lambda: vit(rounded), vit_work)
    return found


def error_of(logits, truth):
    return float((logits.float().cpu() - truth).abs().max() / truth.abs().max())


def compare(name, size, batch, arguments):
    device = "cpu" if arguments.check else "cuda"
    model = authors_model(name, size, arguments.vil)
    x = torch.randn(batch, 3, *size, generator=torch.Generator().manual_seed(7))
    truth = model(x)
    print(f"\nViL-{name} {size[0]} x {size[1]}, batch {batch}")
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        write_directory(directory, model, architecture(name, size), size)
        pixels = directory / "pixels"
        pixels.write_bytes(x.numpy().tobytes())
        found = peers(model.to(device), size, x.to(device), arguments)
        running = timing.working({peer: waited(run) for peer, (run, _) in found.items()})
        errors = {peer: error_of(found[peer][0](), truth) for peer in running
                  if peer.startswith("authors")}
        ours = Ours(folder, "bf16", 2, arguments.device)
        answer = ours.classify(pixels, x.shape)
        errors["longview:bf16"] = error_of(torch.tensor(answer["logits"]), truth)
        if errors["longview:bf16"] > TOLERANCE["bf16"]:
            raise SystemExit(f"off by {errors['longview:bf16']:.1e}: no ratio for a wrong result")
        print("  errors:", ", ".join(f"{peer} {error:.1e}" for peer, error in errors.items()))
        if not arguments.check:
            functions = running | {
                "longview:bf16": lambda: float(ours.classify(pixels, x.shape)["seconds"])}
            work = {peer: flop for peer, (_, flop) in found.items()}
            work["longview:bf16"] = work["authors:fp32"]
            times = timing.interleave(functions, arguments.repeats, warmup=3)
            report(times, work, {"longview:bf16": errors["longview:bf16"]}, {})
        ours.close()


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vil", default=os.environ.get("LONGVIEW_VIL"),
                        help="checkout of microsoft/vision-longformer; $LONGVIEW_VIL")
    parser.add_argument("--models", default="small")
    parser.add_argument("--sizes", default="384,1024")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--device", default="cuda:0", help="of Longview; the others take the first")
    parser.add_argument("--check", action="store_true", help="results on the CPU, nothing timed")
    arguments = parser.parse_args()
    if not arguments.vil:
        parser.error("--vil, or LONGVIEW_VIL, names a checkout of the authors' code")
    if arguments.check:
        arguments.models, arguments.sizes, arguments.batches = "tiny", "112", "2"
        arguments.device = "cpu"
    elif not torch.cuda.is_available():
        parser.error("needs a CUDA device; there is none here (--check runs without)")
    return arguments


def main():
    arguments = parse()
    torch.set_grad_enabled(False)
    print("the CPU" if arguments.check else torch.cuda.get_device_name(0))
    print(timing.machine())
    print(timing.versions("torch", "torchvision", "timm"))
    if not arguments.check:
        print(f"matrix rate {2 * matrix_rate() / 1e12:.0f} TFLOP/s in bf16")
    for name in arguments.models.split(","):
        for size in arguments.sizes.split(","):
            for batch in arguments.batches.split(","):
                compare(name, sides(size), int(batch), arguments)


if __name__ == "__main__":
    main()
