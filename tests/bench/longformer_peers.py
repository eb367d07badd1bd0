"""Longformer-base-4096 classification beside what a user would run instead, in one run.

  python tests/bench/longformer_peers.py --lengths 512,1024,4096
  python tests/bench/longformer_peers.py --lengths 700+1500+3000+4096     one mixed batch

Same random weights for all; the answers are compared before a ratio is printed. Needs
`pip install torch==2.11.0 transformers==5.23.0 openvino==2026.4.1`, and build/bin/model_pipe.
"""

import argparse
import statistics
import sys
import tempfile

import numpy as np
import torch
from transformers import LongformerConfig, LongformerForSequenceClassification

import timing
from pipe import Ours

TOLERANCE = {"fp32": 1e-4, "bf16": 5e-2}


def build(layers):
    torch.manual_seed(1)
    return LongformerForSequenceClassification(LongformerConfig(
        vocab_size=50265, hidden_size=768, num_hidden_layers=layers, num_attention_heads=12,
        intermediate_size=3072, max_position_embeddings=4098, type_vocab_size=1,
        layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2, sep_token_id=2,
        attention_window=512, num_labels=2, initializer_range=0.04)).eval()


def padded(documents):
    """ids, mask and CLS-global mask of a batch as HuggingFace wants it."""
    n = max(map(len, documents))
    ids = torch.ones(len(documents), n, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, document in enumerate(documents):
        ids[row, :len(document)] = torch.tensor(document)
        mask[row, :len(document)] = 1
    globals_ = torch.zeros_like(ids)
    globals_[:, 0] = 1
    return ids, mask, globals_


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, globals_):
        return self.model(input_ids=ids, attention_mask=mask, global_attention_mask=globals_,
                          return_dict=False)[0]


def openvino_peer(model, given, dtype, threads):
    """Static shape padded to the window, as the converter needs it."""
    import openvino
    pad = -given[0].shape[1] % 512
    given = [torch.nn.functional.pad(x, (0, pad), value=int(i == 0)) for i, x in enumerate(given)]
    converted = openvino.convert_model(Logits(model), example_input=tuple(given),
                                       input=[tuple(x.shape) for x in given])
    request = openvino.Core().compile_model(converted, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[dtype]}).create_infer_request()
    arrays = [x.numpy() for x in given]
    return lambda: torch.from_numpy(np.array(request.infer(arrays)[0]))


def peers(models, documents, wanted, threads):
    """name -> function returning fp32 logits [documents, labels]."""
    batch = padded(documents)
    found = {}
    for name in wanted:
        kind, dtype = name.split(":")
        if kind == "hf":
            found[name] = lambda m=Logits(models[dtype]): m(*batch).float()
        elif kind == "hf-one-by-one":
            each = [padded([document]) for document in documents]
            found[name] = lambda m=Logits(models[dtype]): torch.cat([m(*x) for x in each]).float()
        elif kind == "openvino":
            found[name] = openvino_peer(models["fp32"], batch, dtype, threads)
        else:
            raise SystemExit(f"unknown peer {name}")
    return found


def compare(models, ours, lengths, wanted, arguments):
    generator = torch.Generator().manual_seed(7)
    documents = [[0] + torch.randint(3, 50265, (n - 1,), generator=generator).tolist()
                 for n in lengths]
    truth = torch.cat([Logits(models["fp32"])(*padded([document])) for document in documents])
    print(f"\n{'+'.join(map(str, lengths))} tokens, {arguments.layers} layers, "
          f"{arguments.threads} threads")
    functions, errors, peak = {}, {}, {}
    for name, function in peers(models, documents, wanted, arguments.threads).items():
        errors[name] = float((function() - truth).abs().max())
        functions[name] = function
    for dtype, process in ours.items():
        answer = process.run(documents)
        name = f"longview:{dtype}"
        errors[name] = float((torch.tensor(answer["logits"]) - truth).abs().max())
        if errors[name] > TOLERANCE[dtype]:
            raise SystemExit(f"{name} is off by {errors[name]:.1e}: no ratio for a wrong result")
        peak[name] = answer["peak_bytes"]
        functions[name] = lambda p=process: float(p.run(documents)["seconds"])
    quiet = timing.wait_for_quiet()
    times = timing.interleave(functions, arguments.repeats)
    for name, values in times.items():
        memory = f"  peak +{peak[name] / 1e6:.0f} MB" if name in peak else ""
        print(f"  {name:20} {timing.spread(values)}  error {errors[name]:.1e}{memory}")
    for dtype in ours:
        mine = statistics.median(times[f"longview:{dtype}"])
        ratios = [f"{statistics.median(times[name]) / mine:.2f}x {name}" for name in times
                  if not name.startswith("longview")]
        print(f"  longview:{dtype} is faster by: {', '.join(ratios)}")
    print("  quiet machine" if quiet else "  OTHER LOAD on the machine: do not quote these figures")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="512,1024,4096")
    parser.add_argument("--peers", default="hf:fp32,hf:bf16,openvino:fp32,openvino:bf16")
    parser.add_argument("--dtypes", default="fp32,bf16", help="of Longview")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    print(timing.machine())
    print(timing.versions("torch", "transformers", "openvino"))
    models = {"fp32": build(arguments.layers)}
    models["bf16"] = build(arguments.layers).to(torch.bfloat16)
    with tempfile.TemporaryDirectory() as directory:
        models["fp32"].save_pretrained(directory)
        ours = {dtype: Ours(directory, dtype, arguments.threads)
                for dtype in arguments.dtypes.split(",")}
    for process in ours.values():
        print(process.facts["ready"])
    for spec in arguments.lengths.split(","):
        compare(models, ours, [int(n) for n in spec.split("+")], arguments.peers.split(","),
                arguments)
    for process in ours.values():
        process.close()


if __name__ == "__main__":
    sys.exit(main())
