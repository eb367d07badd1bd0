"""The effect of a very long prompt on the streams beside it.

  python tests/bench/long_prompt.py [--model models/zoo/code-lm] [--tokens 100000] [--streams 4]

Starts the server, lets some streams run alone for a while, then sends one prompt of --tokens bytes;
the streams go on until it is read and a while longer. Prints the gaps between the streams' pieces
before, while and after it is read, the ceiling the server plans for
(longview_inter_token_ceiling_seconds), the prompt's time, and the memory it took beside the closed
form. Every stream must say what it says alone, else there are no figures.
"""

import argparse
import json
import math
import pathlib
import sys
import threading
import time
import urllib.request

import timing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from server_process import Server  # noqa: E402

SOURCE = (ROOT / "server/engine/engine.cc").read_text()


def stream(server, prompt, tokens, stamps, done=lambda text: False):
    """The text; appends the time of every piece to `stamps`. Leaves once `done(text)`."""
    body = json.dumps({"model": "lm", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                       "stream": True}).encode()
    call = urllib.request.Request(f"{server.url}/v1/completions", body)
    text = ""
    with urllib.request.urlopen(call) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                stamps.append(time.perf_counter())
                text += json.loads(line[6:])["choices"][0]["text"]
                if done(text):
                    break
    return text


def describe(name, gaps):
    gaps = sorted(gaps)
    at = [gaps[int(share * (len(gaps) - 1))] * 1e3 for share in (0.5, 0.99, 1)]
    print(f"{name:24} {len(gaps):6} gaps, p50 {at[0]:6.2f} ms, p99 {at[1]:6.2f} ms, "
          f"longest {at[2]:6.2f} ms")


class Streams:
    """Streams that go on until they are told to end."""

    def __init__(self, server, count, limit):
        self.server, self.limit = server, limit
        self.prompts = [SOURCE[i * 500:i * 500 + 400] for i in range(count)]
        self.stamps = [[] for _ in self.prompts]
        self.texts = [None] * count
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        self.texts[i] = stream(self.server, self.prompts[i], self.limit, self.stamps[i],
                               lambda _: self.ended.is_set())

    def wait_for_more(self, seconds):
        """Until each has said something new, and for so long."""
        said = [len(stamps) for stamps in self.stamps]
        while any(thread.is_alive() and len(stamps) <= before
                  for thread, stamps, before in zip(self.threads, self.stamps, said)):
            time.sleep(0.01)
        time.sleep(seconds)

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        """That each said what it says alone."""
        for prompt, text in zip(self.prompts, self.texts):
            alone = stream(self.server, prompt, self.limit, [], lambda said: len(said) > len(text))
            if not alone.startswith(text.rstrip("\ufffd")):
                raise SystemExit("a stream said something else beside the long prompt: no figures")

    def gaps(self, begin, end):
        """Between pieces, by the time of the later one."""
        return [b - a for times in self.stamps for a, b in zip(times, times[1:]) if begin <= b < end]


def measure(server, arguments):
    long = (SOURCE * (1 + arguments.tokens // len(SOURCE)))[:arguments.tokens]
    estimate = server.post_json("/v1/estimate", {"model": "lm", "text": long, "max_tokens": 8})[1]
    streams = Streams(server, arguments.streams, arguments.length)
    streams.wait_for_more(arguments.seconds)
    resident = server.resident_bytes()
    first = []
    start = time.perf_counter()
    stream(server, long, 8, first)
    grown = server.resident_bytes() - resident
    ceiling = server.metric("longview_inter_token_ceiling_seconds", model="lm")
    streams.wait_for_more(arguments.seconds)
    streams.end()
    streams.check()
    beside = streams.gaps(start, first[0])
    if not beside:
        raise SystemExit("no stream said anything while the prompt was read: raise --tokens")
    if not streams.gaps(first[0], math.inf):
        raise SystemExit("the streams ended before the prompt was read: raise --length")
    describe("before", streams.gaps(0, start))
    describe("while the prompt is read", beside)
    describe("after", streams.gaps(first[0], math.inf))
    over = sum(gap > ceiling for gap in beside)
    print(f"ceiling {ceiling * 1e3:.1f} ms, passed by {over} gaps; {arguments.tokens} tokens read in "
          f"{first[0] - start:.2f} s beside {arguments.streams} streams; state by the closed form "
          f"{estimate['state_bytes'] / 1e6:.1f} MB, resident memory grew by {grown / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/zoo/code-lm")
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--length", type=int, default=100_000, help="most tokens of each stream")
    parser.add_argument("--seconds", type=float, default=2, help="before and after the prompt")
    arguments = parser.parse_args()
    print(timing.machine())
    print("quiet machine" if timing.wait_for_quiet() else "OTHER LOAD: do not quote these figures")
    with Server([f"lm={arguments.model}"], "--cache_bytes=2GiB") as server:
        measure(server, arguments)


if __name__ == "__main__":
    main()
