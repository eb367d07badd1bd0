"""Text encoders that people deploy, of the published shapes, beside what a user would run instead, in one run.

  python tests/bench/document_peers.py --model modernbert-base --lengths 8192
  python tests/bench/document_peers.py --model longformer-base --lengths 700+1500+3000+4096    one mixed batch

Models are named in published_shapes.py. Same random weights for all; the answers are compared before a ratio is
printed. Peers get their best settings: SDPA where the class has it, bf16 beside fp32, shapes compiled for the length
by OpenVINO, int8 as NNCF makes it (openvino:int8), and an allocator that keeps its memory (the process starts itself
anew with TUNED, which Longview's own does not get). `--record FILE` keeps the figures as JSON, from which
peers_chart.py draws. Needs `pip install torch==2.11.0 transformers==5.24.0 openvino==2026.4.1 nncf`, and
build/bin/model_pipe.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import statistics
import sys
import tempfile

from pipe import TUNED, Ours

if __name__ == "__main__" and "MALLOC_TOP_PAD_" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **TUNED})

import torch  # noqa: E402

import timing  # noqa: E402
from published_shapes import SHAPES, Peers, build, documents  # noqa: E402

# Of the largest logit where int8 is concerned: random weights have no margin to lose.
TOLERANCE = {"fp32": 1e-4, "bf16": 5e-2, "int8": 0.25}


def compare(peers, ours, lengths, arguments):
    """Prints one batch; returns {who: {median_s, min_s, max_s, error}} and whether the machine was quiet."""
    given = documents(lengths, peers.models["fp32"].config.vocab_size)
    truth = peers.truth(given)
    print(f"\n{arguments.model}, {'+'.join(map(str, lengths))} tokens, "
          f"{peers.models['fp32'].config.num_hidden_layers} layers, {arguments.threads} threads; "
          f"largest logit {float(truth.abs().max()):.2f}")
    functions, errors, peak = {}, {}, {}
    for name in arguments.peers.split(","):
        functions[name] = peers.function(name, given)
        errors[name] = float((functions[name]() - truth).abs().max())
    for dtype, process in ours.items():
        answer = process.run(given)
        name = f"longview:{dtype}"
        errors[name] = float((torch.tensor(answer["logits"]) - truth).abs().max())
        peak[name] = answer["peak_bytes"]
        functions[name] = lambda p=process: float(p.run(given)["seconds"])
    for name, error in errors.items():
        dtype = name.split(":")[1]
        if error > TOLERANCE[dtype] * (float(truth.abs().max()) if dtype == "int8" else 1):
            raise SystemExit(f"{name} is off by {error:.1e}: no ratio for a wrong result")
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
    return {name: {"median_s": round(statistics.median(values), 4), "min_s": round(min(values), 4),
                   "max_s": round(max(values), 4), "error": float(f"{errors[name]:.1e}")}
            for name, values in times.items()}, quiet


def record(file, found, quiet, tokens, arguments):
    """Puts a result into the file, in the place of an older one of the same model and length."""
    path = pathlib.Path(file)
    results = json.loads(path.read_text()) if path.exists() else []
    command = ["python", "tests/bench/document_peers.py", "--model", arguments.model, "--lengths", str(tokens),
               "--peers", arguments.peers, "--dtypes", arguments.dtypes, "--repeats", str(arguments.repeats),
               "--record", "tests/bench/peers.json"]
    entry = {"model": arguments.model, "tokens": tokens, "threads": arguments.threads,
             "date": datetime.date.today().isoformat(), "machine": timing.machine(),
             "versions": timing.versions("torch", "transformers", "openvino"), "quiet": quiet,
             "command": shlex.join(command), "who": found}
    place = [(old["model"], old["tokens"]) for old in results]
    if (arguments.model, tokens) in place:
        results[place.index((arguments.model, tokens))] = entry
    else:
        results.append(entry)
    path.write_text(json.dumps(results, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="longformer-base", choices=sorted(SHAPES))
    parser.add_argument("--lengths", default="512,1024,4096")
    parser.add_argument("--peers", default="hf:fp32,hf:bf16,openvino:fp32,openvino:bf16")
    parser.add_argument("--dtypes", default="fp32,bf16", help="of Longview")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, help="fewer than the model has, for a quick look")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--record", metavar="FILE", help="keeps what was measured on whole models")
    arguments = parser.parse_args()
    if arguments.record and arguments.layers:
        parser.error("--record is for whole models")
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    print(timing.machine())
    print(timing.versions("torch", "transformers", "openvino"))
    peers = Peers(build(arguments.model, arguments.layers), arguments.threads)
    with tempfile.TemporaryDirectory() as directory:
        peers.models["fp32"].save_pretrained(directory)
        ours = {dtype: Ours(directory, dtype, arguments.threads, without=TUNED)
                for dtype in arguments.dtypes.split(",")}
    for process in ours.values():
        print(process.facts["ready"])
    for spec in arguments.lengths.split(","):
        lengths = [int(n) for n in spec.split("+")]
        found, quiet = compare(peers, ours, lengths, arguments)
        if arguments.record and len(lengths) == 1:
            record(arguments.record, found, quiet, lengths[0], arguments)
    for process in ours.values():
        process.close()


if __name__ == "__main__":
    sys.exit(main())
