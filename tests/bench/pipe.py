"""Longview's models in a process of their own, for benchmarks that compare."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))


class Ours:
    """A model_pipe process; `without` names variables of the environment that it does not inherit."""

    def __init__(self, directory, dtype, threads, device="cpu", without=()):
        self.process = subprocess.Popen(
            [BUILD / "bin/model_pipe", directory, dtype, str(threads), device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={name: value for name, value in os.environ.items() if name not in without})
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"model_pipe ended with {self.process.wait()}, see above")
        self.facts = json.loads(line)
        # A model without a version for the device is served by the CPU.
        if self.facts["device"] != device:
            raise SystemExit(f"not on {device}: the model runs on {self.facts['device']}")

    def run(self, documents):
        return self.ask({"documents": documents})

    def classify(self, path, shape):
        """Images [n, 3, h, w] from a file of raw floats."""
        return self.ask({"pixels": str(path), "shape": list(shape)})

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
