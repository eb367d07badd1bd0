"""RetinaNet on Vision Longformer beside torchvision's RetinaNet on a ResNet-50, in one run.

  python tests/bench/detection_peers.py --backbone small --sizes 800x1333 --dtypes fp32,bf16

Random weights, so the work is that of a trained model but for the number of candidates; class biases
are the published prior (-ln 99), with which random towers leave few. Ours is timed from the decoded and
resized picture to boxes, the peer from a float picture to boxes: both normalise. Post-processing is
what follows the last convolution: choosing candidates, suppression, mapping back. Needs
`pip install torch==2.11.0 torchvision==0.26.0 safetensors pillow`, and build/bin/detection_pipe.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file

import timing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models/convert"))
import vil_detector  # noqa: E402
import vil_shapes  # noqa: E402

ARCHITECTURES = {
    "tiny": "l1,h1,d48,n1,s1,g1,p4,f7,a0_l2,h3,d96,n1,s1,g1,p2,f7,a0_l3,h3,d192,n9,s1,g1,p2,f7,a0"
            "_l4,h6,d384,n1,s1,g0,p2,f7,a0",
    "small": "l1,h3,d96,n1,s1,g1,p4,f7,a0_l2,h3,d192,n2,s1,g1,p2,f7,a0"
             "_l3,h6,d384,n8,s1,g1,p2,f7,a0_l4,h12,d768,n1,s1,g0,p2,f7,a0",
}


def write_model(directory, backbone, size):
    """A RetinaNet of the published sizes with random weights."""
    config = {"architectures": ["ViLForObjectDetection"], "model_type": "vil",
              "detector": "retinanet", "arch": ARCHITECTURES[backbone], "image_size": 1333,
              "norm_embed": True, "num_labels": 80, "head_num_convs": 4, "fpn_out_channels": 256}
    stages = vil_shapes.parse_arch(config["arch"])
    shapes, _ = vil_detector.backbone_shapes(stages, True)
    shapes.update(vil_detector.head_shapes(config, stages))
    random = np.random.default_rng(1)
    tensors = {}
    for name, shape in shapes.items():
        if "norm" in name and name.endswith("weight"):
            tensors[name] = np.ones(shape, np.float32)
        elif name.endswith("bias"):
            tensors[name] = np.zeros(shape, np.float32)
        else:
            fan = max(1, int(np.prod(shape[1:])))
            tensors[name] = random.normal(0, fan ** -0.5, shape).astype(np.float32)
    tensors["head.cls_score.bias"] -= np.float32(math.log(99))
    save_file(tensors, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(config))
    height, width = size
    (directory / "preprocessor_config.json").write_text(json.dumps(
        {**vil_detector.PREPROCESSOR, "size": {"shortest_edge": min(size), "longest_edge": max(size)}}))
    picture = random.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), dtype=np.uint8)
    picture = Image.fromarray(picture).resize((width, height), Image.Resampling.BICUBIC)
    picture.save(directory / "picture.png")
    return directory / "picture.png"


class Ours:
    def __init__(self, directory, dtype, threads):
        self.process = subprocess.Popen(
            [ROOT / "build/bin/detection_pipe", directory, dtype, str(threads)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline().strip() == "ready"

    def __call__(self, path):
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        self.last = json.loads(self.process.stdout.readline())
        return self.last["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def peer(size, dtype):
    from torchvision.models.detection import retinanet_resnet50_fpn
    torch.manual_seed(1)
    model = retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91,
                                   min_size=min(size), max_size=max(size)).eval()
    return model.to(torch.bfloat16 if dtype == "bf16" else torch.float32)


def run(size, options):
    with tempfile.TemporaryDirectory() as folder:
        path = write_model(pathlib.Path(folder), options.backbone, size)
        pixels = torch.from_numpy(np.asarray(Image.open(path)).copy()).permute(2, 0, 1) / 255
        ours = {dtype: Ours(folder, dtype, options.threads) for dtype in options.dtypes}
        functions = {f"longview {dtype}": lambda o=o: o(path) for dtype, o in ours.items()}
        for dtype in options.peers:
            model = peer(size, dtype)
            given = pixels.to(torch.bfloat16 if dtype == "bf16" else torch.float32)
            functions[f"torchvision {dtype}"] = lambda m=model, x=given: m([x])
        if not timing.wait_for_quiet():
            print("the machine is busy: use the ratios with care")
        times = timing.interleave(functions, options.repeats)
        base = statistics.median(times.get("torchvision fp32", [float("nan")]))
        for name, values in times.items():
            ratio = base / statistics.median(values)
            print(f"{size[0]}x{size[1]} {name:17s} {timing.spread(values)}  {ratio:5.2f}x torchvision fp32")
        for dtype, o in ours.items():
            last = o.last
            assert 0 <= last["detections"] <= 100 and last["seconds"] > 0
            share = last["post"] / last["seconds"]
            print(f"  {dtype}: backbone {last['backbone'] * 1e3:.0f} ms, head "
                  f"{last['head'] * 1e3:.0f} ms, linears {last['linears'] * 1e3:.0f} ms, attention "
                  f"{last['attention'] * 1e3:.0f} ms, post-processing {last['post'] * 1e3:.1f} ms "
                  f"({share:.1%}), {last['detections']} detections, workspace "
                  f"{last['workspace_bytes'] / 1e6:.0f} MB, predicted {last['predicted'] * 1e3:.0f} ms, "
                  f"decoding and resizing before it {last['prepare'] * 1e3:.0f} ms")
            o.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backbone", choices=sorted(ARCHITECTURES), default="small")
    parser.add_argument("--sizes", default="800x1333")
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--peers", default="fp32", help="torchvision's types; empty = none")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    options.dtypes = options.dtypes.split(",")
    options.peers = [dtype for dtype in options.peers.split(",") if dtype]
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    print(timing.machine(), timing.versions("torch", "torchvision"), sep="\n")
    for size in options.sizes.split(","):
        run(tuple(int(side) for side in size.split("x")), options)


if __name__ == "__main__":
    main()
