"""load.py as a context manager, and what it found."""

import collections
import json
import os
import subprocess
import sys
import time

from node import HERE, wait_until

STEADY = ("grpc=0.5", "grpc-stream=3", "rest=0.5", "rest-stream=3")


class Traffic:
    """Calls to a release from begin to end of the `with`; afterwards `calls` has all of them."""

    def __init__(self, release, file, *rates, program="load.py"):
        """file: where the calls are written. rates: arguments of load.py; none = STEADY."""
        self._release, self._file, self._program = release, file, program
        self._rates = rates if any("=" in rate for rate in rates) else (*STEADY, *rates)
        self.calls = []

    def __enter__(self):
        node = self._release.node
        self._process = subprocess.Popen(
            node.inside(sys.executable, HERE / self._program, self._release.namespace, self._file,
                        *self._rates),
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "GRPC_DNS_RESOLVER": "ares"})
        kinds = {rate.partition("=")[0] for rate in self._rates if "=" in rate}
        wait_until(lambda: kinds <= {call["kind"] for call in self.read() if not call["error"]}, 120,
                   "every kind of call is answered")
        return self

    def read(self):
        if self._process.poll() is not None:
            raise RuntimeError(self._process.stderr.read())
        return self._parse()

    def _parse(self):
        if not self._file.exists():
            return []
        lines = self._file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def flows(self, seconds):
        """Lets the calls go on for a while."""
        time.sleep(seconds)
        self.read()

    def __exit__(self, *_):
        _, errors = self._process.communicate("", timeout=300)
        self.calls = self._parse()
        assert self._process.returncode == 0, errors

    def failures(self, *kinds):
        return [call for call in self.calls if call["error"] and (not kinds or call["kind"] in kinds)]

    def summary(self):
        counts = collections.Counter(call["kind"] for call in self.calls)
        slowest = max(call["seconds"] for call in self.calls)
        return f"{dict(counts)}, {len(self.failures())} failed, slowest {slowest:.1f} s"
