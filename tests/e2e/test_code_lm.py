"""The bundled language model of source text: scores and continues code, the same way each time."""

import json
import math
import re

import pytest

MODEL = "code-lm"
LIMIT = 2.2  # Bits per byte of SOURCE; the model itself says 1.86, a coin per bit 8.

# Ends where the next bytes are hard to miss for a model that looks back.
SOURCE = """\
// Groups of threads that wait for each other.
#pragma once

#include <condition_variable>
#include <mutex>

namespace example {

class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads), waiting_(0), round_(0) {}

  // Returns true in exactly one of the threads of a round.
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int round = round_;
    if (++waiting_ == threads_) {
      waiting_ = 0;
      ++round_;
      condition_.notify_all();
      return true;
    }
    condition_.wait(lock, [&] { return round != round_; });
    return false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  const int threads_;
  int waiting_;
  int round_;
};

}  // namespace example
"""

PROMPTS = ["def main():", "import os\nimport sys\n", "class Stack:\n    def __init__(self", "for name in names:\n",
           "def read_lines(path):\n    with open(", "#include <stdio.h>\n\nint main(", "package main\n\nimport (\n",
           "/**\n * Returns the number of elements", "function add(a, b) {\n", "impl Iterator for Counter {\n"]


def complete(server, **body):
    status, answer = server.post_json("/v1/completions", {"model": MODEL, **body})
    assert status == 200, answer
    return answer


def bits_per_byte(server, text):
    """Of every byte; the token that begins a text stands before them and has no score."""
    answer = complete(server, prompt=text, max_tokens=0, echo=True, logprobs=0)
    scores = [p for p in answer["choices"][0]["logprobs"]["token_logprobs"] if p is not None]
    assert len(scores) == len(text.encode())
    return -sum(scores) / math.log(2) / len(scores)


def test_source_text_is_likelier_than_noise(zoo_server):
    assert bits_per_byte(zoo_server, SOURCE) < LIMIT
    assert bits_per_byte(zoo_server, SOURCE[::-1]) > bits_per_byte(zoo_server, SOURCE) + 0.5


def test_a_repeated_text_is_remembered(zoo_server):
    alone = bits_per_byte(zoo_server, SOURCE)
    assert bits_per_byte(zoo_server, SOURCE + SOURCE) < alone


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_answers_are_not_blank(zoo_server, prompt):
    """Three words within the first 100 bytes: small models like to answer blanks with blanks."""
    text = complete(zoo_server, prompt=prompt, max_tokens=100, temperature=0)["choices"][0]["text"]
    assert len(re.findall(r"[A-Za-z_]{2,}", text)) >= 3, text


@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 0.7, "seed": 5}],
                         ids=["greedy", "seeded"])
def test_continuations_repeat(zoo_server, options):
    first = complete(zoo_server, prompt=SOURCE, max_tokens=64, **options)
    again = complete(zoo_server, prompt=SOURCE, max_tokens=64, **options)
    assert first["choices"] == again["choices"]
    assert first["usage"]["completion_tokens"] <= 64


def test_a_stream_is_the_same_text(zoo_server):
    body = {"model": MODEL, "prompt": SOURCE, "max_tokens": 48, "temperature": 0}
    whole = complete(zoo_server, **body)["choices"][0]["text"]
    status, _, events = zoo_server.post("/v1/completions", {**body, "stream": True})
    assert status == 200
    pieces = [json.loads(line[6:]) for line in events.decode().splitlines()
              if line.startswith("data: {")]
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == whole
