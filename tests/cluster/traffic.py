"""load.py as a context manager, and what it found."""

import collections
import json
import os
import subprocess
import sys
import time

from node import HERE, wait_until

STEADY = ("grpc=0.3", "grpc-stream=3", "rest=0.3", "rest-stream=3")


class Traffic:
    """Calls to a release from begin to end of the `with`; afterwards `calls` has all of them."""

    def __init__(self, release, file, *arguments):
        """file: where the calls are written. arguments: of load.py; without rates, STEADY."""
        self._release, self._file = release, file
        given = any(not one.startswith("--") for one in arguments)
        self._arguments = arguments if given else (*STEADY, *arguments)
        self.calls = []

    def __enter__(self):
        node = self._release.node
        self._process = subprocess.Popen(
            node.inside(sys.executable, HERE / "load.py", self._release.namespace, self._file,
                        *self._arguments),
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "GRPC_DNS_RESOLVER": "ares"})
        kinds = {one.partition("=")[0] for one in self._arguments if not one.startswith("--")}
        wait_until(lambda: kinds <= {call["kind"] for call in self.read() if not call["error"]}, 600,
                   "every kind of call is answered")
        return self

    def read(self):
        if self._process.poll() is not None:
            raise RuntimeError(self._process.stderr.read())
        return self._parse()

    def _parse(self):
        return [line for line in journal_lines(self._file) if "kind" in line]

    def flows(self, seconds):
        """Lets the calls go on for a while."""
        time.sleep(seconds)
        self.read()

    def mark(self, text):
        """Writes an event between the calls, for picture.py."""
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(json.dumps({"mark": text, "at": time.time()}) + "\n")

    def __exit__(self, *_):
        _, errors = self._process.communicate("", timeout=1200)
        self.calls = self._parse()
        assert self._process.returncode == 0, errors

    def failures(self, *kinds):
        return [call for call in self.calls if call["error"] and (not kinds or call["kind"] in kinds)]

    def repeated(self):
        """What clients were told before they called again."""
        return [told for call in self.calls for told in call["repeated"]]

    def summary(self):
        counts = collections.Counter(call["kind"] for call in self.calls)
        slowest = max(call["seconds"] for call in self.calls)
        return (f"{dict(counts)}, {len(self.failures())} failed, {len(self.repeated())} repeated, "
                f"slowest {slowest:.1f} s")


def journal_lines(file):
    """The complete lines of a journal."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True)
            if line.endswith("\n")]
