"""Vision Longformer beside the authors' code and timm's ViT-S, in one run.

  git clone https://github.com/microsoft/vision-longformer
  git -C vision-longformer checkout c9ce386
  python tests/bench/vision_peers.py --vil vision-longformer --models tiny,small --sizes 224,384
  python tests/bench/vision_peers.py --vil vision-longformer --models small --sizes 1024,800x1333

The same random weights for Longview and the authors' code; the answers are compared before a ratio
is printed. Sides above 512 are rounded up to multiples of 32 and stage 3 attends by chunks, as in
the authors' detectors. Needs `pip install torch==2.11.0 torchvision==0.26.0 timm==1.0.31 einops scipy
safetensors` and build/bin/model_pipe.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import timm
import torch

import timing
from pipe import Ours

TOLERANCE = {"fp32": 1e-3, "bf16": 8e-2}  # Relative to the largest logit.
HIGH_RESOLUTION = 512
ARCH = {
    "tiny": "l1,h1,d48,n1,s1,g1,p4,f7_l2,h3,d96,n1,s1,g1,p2,f7_l3,h3,d192,n9,s0,g1,p2,f7_"
            "l4,h6,d384,n1,s0,g0,p2,f7",
    "small": "l1,h3,d96,n1,s1,g1,p4,f7_l2,h3,d192,n2,s1,g1,p2,f7_l3,h6,d384,n8,s0,g1,p2,f7_"
             "l4,h12,d768,n1,s0,g0,p2,f7",
}
VIT = "vit_small_patch16_224"


def sides(text):
    """(height, width) of "224" or "800x1333"."""
    height, width = (int(v) for v in text.split("x")) if "x" in text else (int(text),) * 2
    if max(height, width) > HIGH_RESOLUTION:
        height, width = -(-height // 32) * 32, -(-width // 32) * 32
    return height, width


def architecture(name, size):
    arch = ARCH[name]
    return arch.replace("s0,g1", "s1,g1") if max(size) > HIGH_RESOLUTION else arch


def authors_model(name, size, checkout):
    """The authors' module, built for a map that need not be square."""
    source = str(pathlib.Path(checkout) / "src")
    if source not in sys.path:
        sys.path.insert(0, source)
    from models.msvit import MsViT

    class AnySide(MsViT):
        def _make_layer(self, *given, layerid=0, **more):
            if layerid == 1:
                self.Nx, self.Ny = size
            return super()._make_layer(*given, layerid=layerid, **more)

    torch.manual_seed(1)
    model = AnySide(architecture(name, size), img_size=max(size), norm_embed=True, ln_eps=1e-6,
                    attn_type="longformerhand", sharew=True).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:  # Zero biases and unit scales would hide mistakes.
            parameter.data += 0.02 * torch.randn_like(parameter)
    return model


def write_directory(directory, model, arch, size):
    from safetensors.torch import save_file
    tensors = {name: value.clone().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, directory / "model.safetensors")
    config = {"model_type": "vil", "architectures": ["ViLForImageClassification"], "arch": arch,
              "image_size": list(size), "num_labels": model.head.out_features}
    (directory / "config.json").write_text(json.dumps(config))


def vit_peer(size):
    """timm's ViT-S at this size."""
    return timm.create_model(VIT, pretrained=False, img_size=size, dynamic_img_pad=True).eval()


def flops(model, x):
    """Floating-point operations of a forward pass, counted by PyTorch."""
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        model(x)
    return counter.get_total_flops()


def compare(name, size, arguments):
    arch = architecture(name, size)
    model = authors_model(name, size, arguments.vil)
    x = torch.randn(arguments.batch, 3, *size, generator=torch.Generator().manual_seed(7))
    truth = model(x)
    scale = float(truth.abs().max())
    print(f"\nViL-{name} {size[0]} x {size[1]}, batch {arguments.batch}, "
          f"{arguments.threads} threads")
    functions = {"authors:fp32": lambda: model(x)}
    work = {"authors:fp32": flops(model, x)}
    errors, peaks, ours = {}, {}, []
    vit = vit_peer(size)
    functions[f"timm {VIT}:fp32"] = lambda: vit(x)
    work[f"timm {VIT}:fp32"] = flops(vit, x)
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        write_directory(directory, model, arch, size)
        pixels = directory / "pixels"
        pixels.write_bytes(x.numpy().tobytes())
        for dtype in arguments.dtypes.split(","):
            process = Ours(folder, dtype, arguments.threads)
            ours.append(process)
            answer = process.classify(pixels, x.shape)
            key = f"longview:{dtype}"
            errors[key] = float((torch.tensor(answer["logits"]) - truth).abs().max()) / scale
            if errors[key] > TOLERANCE[dtype]:
                raise SystemExit(f"{key} is off by {errors[key]:.1e}: no ratio for a wrong result")
            peaks[key] = answer["peak_bytes"]
            work[key] = work["authors:fp32"]
            functions[key] = lambda p=process: float(p.classify(pixels, x.shape)["seconds"])
        quiet = timing.wait_for_quiet(arguments.wait)
        times = timing.interleave(functions, arguments.repeats)
        for process in ours:
            process.close()
    report(times, work, errors, peaks)
    print("  quiet machine" if quiet else "  OTHER LOAD on the machine: do not quote these figures")


def report(times, work, errors, peaks):
    for name, values in times.items():
        rate = work[name] / statistics.median(values) / 1e9
        line = f"  {name:34} {timing.spread(values)}  {rate:6.0f} GFLOP/s"
        if name in peaks:
            line += f"  error {errors[name]:.1e}  peak +{peaks[name] / 1e6:.0f} MB"
        print(line)
    for name in errors:
        mine = statistics.median(times[name])
        ratios = [f"{statistics.median(times[other]) / mine:.2f}x {other}" for other in times
                  if other.startswith("authors")]
        rates = [f"{work[name] / mine / (work[other] / statistics.median(times[other])):.2f}x the "
                 f"GFLOP/s of {other}" for other in times if other.startswith("timm")]
        print(f"  {name} is faster by: {', '.join(ratios + rates)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vil", required=True, help="checkout of microsoft/vision-longformer")
    parser.add_argument("--models", default="tiny,small")
    parser.add_argument("--sizes", default="224,384,1024,800x1333")
    parser.add_argument("--dtypes", default="fp32", help="of Longview")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--wait", type=float, default=60, help="seconds to wait for quiet")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    print(timing.machine())
    print(timing.versions("torch", "torchvision", "timm"))
    for name in arguments.models.split(","):
        for size in arguments.sizes.split(","):
            compare(name, sides(size), arguments)


if __name__ == "__main__":
    sys.exit(main())
