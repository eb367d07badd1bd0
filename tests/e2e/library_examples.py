"""The examples of deploy/COMING_FROM.md in pairs: a library's program, and the one that asks a server.

As a program, with sentence-transformers, records what the libraries' programs print (tests/real has the environment):

  .deps/real/bin/python tests/e2e/library_examples.py
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from server_process import GOLDEN, ROOT

PAGE = ROOT / "deploy/COMING_FROM.md"
PRINTED = pathlib.Path(__file__).with_name("recorded") / "libraries.json"
MODELS = {"my-classifier": "modernbert/text_classification", "my-tagger": "xlm_roberta/text_token_classification",
          "my-masked": "modernbert/text_fill_mask", "my-reader": "longformer/text_question_answering",
          "my-writer": "led/text_summarize",
          "my-embedder": "sentence_transformers/xlm_roberta_mean_dense_default_prompt",
          "my-reranker": "sentence_transformers/reranker_modernbert_sigmoid"}
DIRECTORIES = {name: GOLDEN / case / "model" for name, case in MODELS.items()}
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def pairs():
    """{model: (the library's program, ours)}, in the order of the page."""
    section = PAGE.read_text().partition("\n## Coming from transformers")[2].partition("\n## ")[0]
    programs = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    found = {}
    for library, ours in zip(programs[::2], programs[1::2], strict=True):
        model, = re.findall(r"\"models/([\w-]+)\"", library)[:1]
        found[model] = library, ours
    return found


def run_library(program, python=sys.executable):
    """What a library's program prints in the folder that holds `models/`."""
    with tempfile.TemporaryDirectory() as folder:
        models = pathlib.Path(folder) / "models"
        models.mkdir()
        for name, directory in DIRECTORIES.items():
            (models / name).symlink_to(directory)
        done = subprocess.run([python, "-c", program], cwd=folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def same(printed, wanted, tolerance):
    """Whether lines are the same but for their numbers with a point, which may be off by the tolerance."""
    if len(printed) != len(wanted):
        return False
    for line, other in zip(printed, wanted, strict=True):
        numbers, others = NUMBER.findall(line), NUMBER.findall(other)
        if NUMBER.sub("#", line) != NUMBER.sub("#", other):
            return False
        if not all(math.isclose(float(a), float(b), rel_tol=0, abs_tol=tolerance)
                   for a, b in zip(numbers, others, strict=True)):
            return False
    return True


if __name__ == "__main__":
    record = {model: run_library(library) for model, (library, _) in pairs().items()}
    PRINTED.write_text(json.dumps(record, indent=1) + "\n")
