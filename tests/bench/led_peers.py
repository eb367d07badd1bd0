"""LED beside HuggingFace's generate, in one run: encoder and decoding apart, greedy and beams.

  python tests/bench/led_peers.py                       LED-base, 4,096 tokens in, 128 out
  python tests/bench/led_peers.py --layers 2 --length 700 --new 16 --repeats 1

Same random weights for both; the tokens are compared before a ratio is printed: equal, or different
from a place on where HuggingFace's own two best are closer than 1e-3 (bf16: only reported). Needs
`pip install torch==2.11.0 transformers==5.23.0 safetensors`, and build/bin/generator_pipe.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time

import torch
from transformers import LEDConfig, LEDForConditionalGeneration

import timing
from pipe import ROOT

MARGIN = 1e-3


class Ours:
    """A generator_pipe process."""

    def __init__(self, directory, dtype, threads):
        self.process = subprocess.Popen(
            [ROOT / "build/bin/generator_pipe", directory, dtype, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = json.loads(self.process.stdout.readline())

    def run(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def build(layers):
    torch.manual_seed(1)
    model = LEDForConditionalGeneration(LEDConfig(
        vocab_size=50265, d_model=768, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072,
        decoder_ffn_dim=3072, attention_window=1024, max_encoder_position_embeddings=16384,
        max_decoder_position_embeddings=1024, init_std=0.04)).eval()
    # Random weights repeat one token for ever; a bias per token makes them wander.
    model.final_logits_bias = torch.randn(1, 50265, generator=torch.Generator().manual_seed(2))
    return model


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), None)


def check(model, given, theirs, ours, dtype):
    """Says why the tokens may differ where they do; stops if there is no good reason."""
    place = first_difference(theirs, ours)
    if place is None:
        return "same tokens"
    if dtype != "fp32":
        return f"same tokens up to {place}"
    start = torch.tensor([[2] + theirs[:place]])
    logits = model(**given, decoder_input_ids=start).logits[0, -1]
    best = logits.topk(2).values
    if float(best[0] - best[1]) > MARGIN:
        raise SystemExit(f"token {place} differs, and HuggingFace is sure of its own by "
                         f"{float(best[0] - best[1]):.1e}: no ratio for a wrong result")
    return f"same tokens up to {place}, where the two best are {float(best[0] - best[1]):.1e} apart"


def compare(models, pipes, ids, beams, arguments):
    tokens = torch.tensor([ids])
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens),
             "global_attention_mask": torch.zeros_like(tokens)}
    given["global_attention_mask"][0, 0] = 1
    settings = {"max_new_tokens": arguments.new, "min_new_tokens": arguments.new,
                "num_beams": beams}
    print(f"\n{len(ids)} tokens in, {arguments.new} out, {beams} beam{'s' * (beams > 1)}")
    theirs = {}
    for name, model in models.items():
        encoder, whole = [], []
        for _ in range(arguments.repeats + 1):
            start = time.perf_counter()
            model.get_encoder()(**given)
            encoder.append(time.perf_counter() - start)
            start = time.perf_counter()
            output = model.generate(**given, do_sample=False, use_cache=True, **settings)
            whole.append(time.perf_counter() - start)
            # Interleaved: ours follow each round.
            for process in pipes.values():
                answer = process.run(ids=ids, options=settings, **{"global": [0]})
                if "error" in answer:
                    raise SystemExit(answer["error"])
                process.rounds.append(answer)
        sequence = output[0, 1:].tolist()
        encode = statistics.median(encoder[1:])
        decode = statistics.median(w - e for w, e in zip(whole[1:], encoder[1:])) / arguments.new
        theirs[name] = (encode, decode, sequence)
        print(f"  hf:{name:13} encoder {encode:8.3f} s  decode {decode * 1e3:8.2f} ms/token")
    for dtype, process in pipes.items():
        rounds, process.rounds = process.rounds[1:], []
        encode = statistics.median(r["first_seconds"] for r in rounds)
        decode = statistics.median(r["rest_seconds"] for r in rounds) / (arguments.new - 1)
        verdict = check(models["fp32"], given, theirs["fp32"][2], rounds[-1]["sequences"][0], dtype)
        print(f"  longview:{dtype:7} encoder {encode:8.3f} s  decode {decode * 1e3:8.2f} ms/token"
              f"  {verdict}")
        for name, (their_encode, their_decode, _) in theirs.items():
            print(f"    faster than hf:{name} by: encoder (with the first token) "
                  f"{their_encode / encode:.2f}x, decode {their_decode / decode:.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--beams", default="1,4")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default="fp32", help="fp32,bf16")
    parser.add_argument("--dtypes", default="fp32,bf16", help="of Longview")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    print(timing.machine())
    print(timing.versions("torch", "transformers"))
    models = {"fp32": build(arguments.layers)}
    if "bf16" in arguments.peers.split(","):
        models["bf16"] = build(arguments.layers).to(torch.bfloat16)
    generator = torch.Generator().manual_seed(7)
    ids = [0] + torch.randint(5, 50265, (arguments.length - 1,), generator=generator).tolist()
    with tempfile.TemporaryDirectory() as directory:
        models["fp32"].save_pretrained(directory)
        pipes = {d: Ours(directory, d, arguments.threads) for d in arguments.dtypes.split(",")}
        for process in pipes.values():
            process.rounds = []
        quiet = timing.wait_for_quiet()
        for beams in map(int, arguments.beams.split(",")):
            compare(models, pipes, ids, beams, arguments)
    print("  quiet machine" if quiet else "  OTHER LOAD on the machine: do not quote these figures")


if __name__ == "__main__":
    main()
