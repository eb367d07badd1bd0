"""Ten short prompts with what a running server's code-lm writes after them, as the model card shows them.

    python continue.py [--url http://127.0.0.1:8080] [--lines 3] [--seed 1] [--set JSON]

Prints every prompt with its greedy continuation and one drawn at the model's own settings
(generation_config.json), as Markdown. `▸` stands where the model begins.
"""
import argparse
import json

import ask

PROMPTS = [
    "def main():",
    "import os\nimport sys\n",
    "class Stack:\n    def __init__(self",
    "def read_lines(path):\n    with open(",
    "    def test_empty(self):\n",
    "#include <stdio.h>\n\nint main(",
    "package main\n\nimport (\n",
    "/**\n * Returns the number of elements",
    "function add(a, b) {\n",
    "impl Iterator for Counter {\n",
]


def first_lines(text, lines):
    """The text up to its `lines`-th line that is not empty."""
    kept = []
    for line in text.split("\n"):
        kept.append(line)
        if sum(bool(part.strip()) for part in kept) > lines:
            break
    return "\n".join(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--lines", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", type=json.loads, default={}, metavar="JSON", help="other settings of a request")
    options = parser.parse_args()
    for number, prompt in enumerate(PROMPTS, 1):
        for name, settings in (("greedy", {"temperature": 0}), ("drawn", {"seed": options.seed})):
            answer = ask.complete(options.url, prompt=prompt, max_tokens=60 * options.lines,
                                  **settings, **options.set)
            text = first_lines(answer["choices"][0]["text"], options.lines)
            print(f"{number}, {name}:\n\n```text\n{prompt}▸{text}\n```\n")


if __name__ == "__main__":
    main()
