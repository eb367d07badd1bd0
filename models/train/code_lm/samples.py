"""What a small language model of source text is good for, shown on a running server's code-lm.

    python samples.py [--url http://127.0.0.1:8080] [FILE]

`copy`: a file, then its beginning again: how many of the next 400 bytes greedy decoding gets
right. `score`: bits per byte of the file, of its lines in another order, of its words in another
order, and of the second of two copies. `long`: a prompt of 32,768 tokens, asked twice.
"""
import argparse
import pathlib
import random
import re
import time

import ask

HERE = pathlib.Path(__file__).resolve().parent
LONG, COPIED = 32768, 400


def copy(url, text):
    """Goes on in a second copy from every fifth of the file."""
    for share in range(1, 5):
        at = text.rfind("\n", 0, len(text) * share // 5) + 1
        found = ask.complete(url, prompt=text + text[:at], max_tokens=COPIED, temperature=0)
        answer = found["choices"][0]["text"]
        right = next((i for i, (a, b) in enumerate(zip(answer, text[at:])) if a != b), len(answer))
        print(f"copy from byte {at}: {right} of {COPIED} bytes before the first other one")


def score(url, text):
    rng = random.Random(1)
    lines, words = text.splitlines(True), re.findall(r"\w+|\W", text)
    rng.shuffle(lines)
    rng.shuffle(words)
    once = ask.bits_per_byte(url, text)
    print(f"as it is: {once:.2f} bits per byte; lines shuffled: {ask.bits_per_byte(url, ''.join(lines)):.2f}; "
          f"words shuffled: {ask.bits_per_byte(url, ''.join(words)):.2f}; "
          f"its second copy: {2 * ask.bits_per_byte(url, text + text) - once:.2f}")


def long(url, text):
    prompt = "".join(path.read_text() for path in sorted(HERE.parent.rglob("*.py")))
    prompt = prompt.encode("ascii", "replace")[:LONG - 1].decode()  # and the token that begins a text
    for which in ("first", "again"):
        begin = time.monotonic()
        usage = ask.complete(url, prompt=prompt, max_tokens=16, temperature=0)["usage"]
        print(f"{which}: {time.monotonic() - begin:.2f} s, {usage['prompt_tokens_details']['cached_tokens']} of "
              f"{usage['prompt_tokens']} tokens cached")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=HERE / "ngram.py")
    options = parser.parse_args()
    text = options.file.read_text()
    for sample in (copy, score, long):
        sample(options.url, text)


if __name__ == "__main__":
    main()
