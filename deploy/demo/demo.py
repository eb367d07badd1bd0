#!/usr/bin/env python3
"""The steps of deploy/demo.sh, against a server of the bundled models; standard library only.

  demo.py URL [--svg FILE]"""

import argparse
import concurrent.futures
import datetime
import hashlib
import html
import json
import os
import pathlib
import re
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "models/zoo/samples/page.jpg"
ROOMS = ("client", "server", "kernels")  # Their sources are the texts.
PROMPT = 32768  # Bytes, which are the tokens of code-lm; one that marks the beginning comes before them.


class Demo:
    def __init__(self, url):
        self.url, self.lines = url, []

    def say(self, line=""):
        self.lines.append(line)
        print(line, flush=True)

    def step(self, title):
        self.say()
        self.say(f"# {title}")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return answer.read().decode()

    def post(self, path, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        call = urllib.request.Request(self.url + path, data, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(call, timeout=300) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"error: {path}: {error.code}: {error.read().decode()}") from None

    def metric(self, name):
        found = re.findall(rf"^longview_{name}{{.*}} (\S+)$", self.get("/metrics"), re.MULTILINE)
        if not found:
            raise SystemExit(f"error: /metrics has no longview_{name}")
        return sum(map(float, found))

    def classify(self, text, **more):
        return self.post("/v1/classify", {"model": "code-language", "text": text, "top_k": 1,
                                          "truncate": True, **more})


def sources(limit):
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.*"))
             if path.suffix in {".cc", ".h", ".py"}]
    return [path.read_text() for path in files[::max(1, len(files) // limit)]][:limit]


def classify_sources(demo):
    texts = sources(150)
    demo.step(f"{len(texts)} files of this repository, 16 in flight, lengths as they come")
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(demo.classify, texts))
    seconds = time.monotonic() - begin
    tokens = sorted(answer["usage"]["input_tokens"] for answer in answers)
    named = {answer["labels"][0]["name"] for answer in answers}
    demo.say(f"  {len(texts) / seconds:.1f} documents/s, {sum(tokens) / seconds:,.0f} tokens/s, "
             f"lengths {tokens[0]} to {tokens[-1]}: {', '.join(sorted(named))}")
    demo.say(f"  of the tokens computed, padding: {demo.metric('padding_ratio') * 100:g} %")
    return texts


def estimate(demo, texts):
    text = max(texts, key=len)
    demo.step("The cost is known before anything runs")
    predicted = demo.post("/v1/estimate", {"model": "code-language", "text": text[:8000]})
    actual = demo.classify(text[:8000])["timing"]["compute_seconds"]
    demo.say(f"  {predicted['usage']['input_tokens']} tokens: predicted {predicted['seconds']:.3f} s, "
             f"took {actual:.3f} s; workspace {predicted['workspace_bytes'] / 2**20:.1f} MiB")


def detect(demo):
    demo.step("A page as a picture")
    found = demo.post("/v1/detect?model=page-layout&score_threshold=0.6", PAGE.read_bytes(),
                      "image/jpeg")
    counts: dict = {}
    for detection in found["detections"]:
        counts[detection["label"]] = counts.get(detection["label"], 0) + 1
    pixels = found["usage"]["width"] * found["usage"]["height"]
    demo.say(f"  {pixels / 1e6:.1f} megapixels in {found['timing']['total_seconds']:.2f} s: "
             + ", ".join(f"{count} {label}" for label, count in sorted(counts.items())))


def long_prompt(demo, texts):
    prompt = "".join(texts).encode()[:PROMPT].decode(errors="ignore")
    body = {"model": "code-lm", "prompt": prompt, "max_tokens": 16, "temperature": 0}
    demo.step(f"A prompt of {PROMPT:,} bytes, a token each, then the same again")
    config = json.loads((ROOT / "models/zoo/code-lm/config.json").read_text())
    state = demo.post("/v1/estimate", {"model": "code-lm", "num_tokens": PROMPT})["state_bytes"]
    full = PROMPT * config["n_layer"] * 2 * config["d_model"] * 4
    demo.say(f"  state {state / 2**20:.1f} MiB; keys and values of every token would take {full / 2**20:.0f} MiB")
    for which in ("first", "again"):
        begin = time.monotonic()
        usage = demo.post("/v1/completions", body)["usage"]
        demo.say(f"  {which}: {time.monotonic() - begin:.2f} s, cached tokens "
                 f"{usage['prompt_tokens_details']['cached_tokens']:,} of {usage['prompt_tokens']:,}")


def same_bits(demo, texts):
    def digest():
        logits = demo.classify(texts[0], return_logits=True)["logits"]
        return hashlib.sha256(json.dumps(logits).encode()).hexdigest()[:16]

    demo.step("One document's logits, computed alone and then while 64 others run")
    alone = digest()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        others = [pool.submit(demo.classify, text) for text in texts[:64]]
        among = digest()
        concurrent.futures.wait(others)
    demo.say(f"  sha256 {alone}…  {among}…  {'the same bits' if alone == among else 'DIFFERENT'}")
    return alone == among


def picture(lines):
    """The lines as a terminal looks, as SVG."""
    width, height = max(map(len, lines)) * 8.4 + 32, len(lines) * 19 + 28
    rows = []
    for number, line in enumerate(lines):
        colour = "#7ee787" if line.startswith(("#", "$")) else "#e6edf3"
        rows.append(f'<text x="16" y="{number * 19 + 30}" fill="{colour}" xml:space="preserve">'
                    f"{html.escape(line)}</text>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
            f'font-family="ui-monospace, monospace" font-size="14">\n'
            f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n' + "\n".join(rows)
            + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    demo = Demo(options.url)
    demo.say(f"$ deploy/demo.sh    # {datetime.date.today()}, {os.cpu_count()} processors")
    texts = classify_sources(demo)
    estimate(demo, texts)
    detect(demo)
    long_prompt(demo, texts)
    same = same_bits(demo, texts)
    if options.svg:
        options.svg.write_text(picture(demo.lines))
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
