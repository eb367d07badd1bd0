"""Longview's models in a process of their own, for benchmarks that compare."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
# An allocator that keeps its memory, which is PyTorch's best setting on a CPU.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "20000000000", "MALLOC_TOP_PAD_": "268435456",
         "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class Pipe:
    """A process that says a line of facts, then answers each JSON line with one."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{command[0]} ended with {self.process.wait()}, see above")
        self.facts = json.loads(line)

    def run(self, documents):
        return self.ask({"documents": documents})

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours(Pipe):
    """A model_pipe process; `without` names variables of the environment that it does not inherit, `extra` is what
    it has beside the others."""

    def __init__(self, directory, dtype, threads, device="cpu", without=(), extra=None):
        inherited = {name: value for name, value in os.environ.items() if name not in without}
        super().__init__([BUILD / "bin/model_pipe", directory, dtype, str(threads), device],
                         {**inherited, **(extra or {})})
        # A model without a version for the device is served by the CPU.
        if self.facts["device"] != device:
            raise SystemExit(f"not on {device}: the model runs on {self.facts['device']}")

    def classify(self, path, shape):
        """Images [n, 3, h, w] from a file of raw floats."""
        return self.ask({"pixels": str(path), "shape": list(shape)})
