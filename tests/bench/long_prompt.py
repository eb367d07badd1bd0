"""What a very long prompt does to the streams beside it.

  python tests/bench/long_prompt.py [--model models/zoo/code-lm] [--tokens 100000] [--streams 4]

Starts the server, lets some streams run alone for a while, then sends one prompt of --tokens bytes.
Prints the gaps between the streams' pieces before and while it is read, the ceiling the server plans
for (longview_inter_token_ceiling_seconds), the prompt's time, and the memory it took beside the
closed form. Every stream must end with the text it has alone, else there are no figures.
"""

import argparse
import json
import pathlib
import statistics
import sys
import threading
import time
import urllib.request

import timing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from server_process import Server  # noqa: E402

SOURCE = (ROOT / "server/engine_impl.cc").read_text()


def stream(server, prompt, tokens, stamps):
    """The text; appends the time of every piece to `stamps`."""
    body = json.dumps({"model": "lm", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                       "stream": True}).encode()
    call = urllib.request.Request(f"{server.url}/v1/completions", body)
    text = ""
    with urllib.request.urlopen(call) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                stamps.append(time.perf_counter())
                text += json.loads(line[6:])["choices"][0]["text"]
    return text


def describe(name, gaps):
    gaps = sorted(gaps)
    at = [gaps[int(share * (len(gaps) - 1))] * 1e3 for share in (0.5, 0.99, 1)]
    print(f"{name:24} {len(gaps):6} gaps, p50 {at[0]:6.2f} ms, p99 {at[1]:6.2f} ms, "
          f"longest {at[2]:6.2f} ms")


def measure(server, arguments):
    prompts = [SOURCE[i * 500:i * 500 + 400] for i in range(arguments.streams)]
    alone = [stream(server, prompt, arguments.length, []) for prompt in prompts]
    stamps = [[] for _ in prompts]
    texts = [None] * len(prompts)

    def run(i):
        texts[i] = stream(server, prompts[i], arguments.length, stamps[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    time.sleep(2)
    long = (SOURCE * (1 + arguments.tokens // len(SOURCE)))[:arguments.tokens]
    estimate = server.post_json("/v1/estimate", {"model": "lm", "text": long, "max_tokens": 8})[1]
    resident = server.resident_bytes()
    first = []
    start = time.perf_counter()
    stream(server, long, 8, first)
    seconds, end = first[0] - start, first[0]
    grown = server.resident_bytes() - resident
    ceiling = server.metric("longview_inter_token_ceiling_seconds", model="lm")
    for thread in threads:
        thread.join()
    if texts != alone:
        raise SystemExit("a stream said something else beside the long prompt: no figures")
    gaps = [(b, b - a) for times in stamps for a, b in zip(times, times[1:])]
    if not any(at > end for at, _ in gaps):
        print("the streams ended before the prompt was read: raise --length")
    describe("streams alone", [gap for at, gap in gaps if at < start])
    describe("while the prompt is read", [gap for at, gap in gaps if start <= at <= end])
    print(f"ceiling {ceiling * 1e3:.1f} ms; {arguments.tokens} tokens read in {seconds:.2f} s "
          f"beside {arguments.streams} streams; state by the closed form "
          f"{estimate['state_bytes'] / 1e6:.1f} MB, resident memory grew by {grown / 1e6:.1f} MB")
    print(f"mean gap of all {statistics.mean(gap for _, gap in gaps) * 1e3:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/zoo/code-lm")
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--length", type=int, default=8000, help="tokens of each stream")
    arguments = parser.parse_args()
    print(timing.machine())
    print("quiet machine" if timing.wait_for_quiet() else "OTHER LOAD: do not quote these figures")
    with Server([f"lm={arguments.model}"], "--cache_bytes=2GiB") as server:
        measure(server, arguments)


if __name__ == "__main__":
    main()
