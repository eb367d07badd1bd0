#!/usr/bin/env python3
"""Builds targets with ninja and says how many minutes are left.

  deploy/progress.py BUILD TARGET...

On a terminal one line is kept up to date; elsewhere a line appears every 30 seconds. What compilers say
is shown as they say it. Exits as ninja does. Needs Python's standard library alone.

The estimate: what is left to do over what is done, times the time so far. An edge counts by its kind.
"""

import os
import re
import subprocess
import sys
import time

STATUS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
# The cost of an edge beside that of a unit that compiles by itself: of the first pattern that its description matches.
WEIGHTS = [(re.compile(pattern), value) for pattern, value in (
    (r"^Building CXX object kernels/", 0.3), (r"^Building CXX .*cmake_pch", 10.0), (r"^Building CXX .*/Unity/", 1.75),
    (r"^Building CXX", 1.0), (r"^Building CUDA", 10.0), (r"^Building the tokenizers crate", 3.0),
    (r"^Linking CXX exec", 0.2), ("", 0.05))]
SECONDS_BETWEEN_LINES = 30.0
# Before this part is done, the first files' times say too little.
LEAST_DONE = 0.02


def weight(description):
    return next(value for pattern, value in WEIGHTS if pattern.search(description))


def remaining(seconds):
    if seconds is None:
        return "estimating"
    if seconds < 55:
        return f"about {max(5, round(seconds / 5) * 5)} s left"
    return f"about {max(1, round(seconds / 60))} min left"


class Progress:
    """Counts finished edges against those that a dry run lists."""

    def __init__(self, descriptions):
        self.edges = len(descriptions)
        self.finished = 0
        self.total = sum(map(weight, descriptions))
        self.done = 0.0

    def finish(self, description):
        self.finished += 1
        self.done += weight(description)
        self.total = max(self.total, self.done)

    def fraction(self):
        return self.done / self.total if self.total else 1.0

    def seconds_left(self, elapsed):
        """From the seconds so far; None while it is too early to tell."""
        if self.fraction() < LEAST_DONE:
            return None
        return elapsed * (1 / self.fraction() - 1)

    def line(self, elapsed):
        return (f"{int(self.fraction() * 100):3d} %, {remaining(self.seconds_left(elapsed))}"
                f" ({self.finished} of {self.edges} steps)")


def follow(lines, progress, out, clock=time.monotonic):
    """Reads ninja's lines until they end and writes progress, and everything else, to `out`."""
    live = out.isatty()
    begin = shown = clock()
    for line in lines:
        status = STATUS.match(line)
        now = clock()
        if not status:
            out.write(("\r\033[K" if live else "") + line)
            continue
        progress.finish(status[3])
        if live:
            out.write(f"\r\033[K    {progress.line(now - begin)}")
        elif now - shown >= SECONDS_BETWEEN_LINES:
            out.write(f"    {progress.line(now - begin)}\n")
            shown = now
        out.flush()
    if live:
        out.write("\r\033[K")
    if progress.finished:
        out.write(f"    {progress.finished} steps in {clock() - begin:.0f} s\n")
    out.flush()


def main(build, targets):
    environment = {**os.environ, "NINJA_STATUS": "[%f/%t] "}
    listed = subprocess.run(["ninja", "-n", *targets], cwd=build, env=environment, capture_output=True, text=True)
    progress = Progress([status[3] for status in map(STATUS.match, listed.stdout.splitlines()) if status])
    with subprocess.Popen(["ninja", *targets], cwd=build, env=environment, stdout=subprocess.PIPE, text=True,
                          errors="replace", stderr=subprocess.STDOUT) as built:
        try:
            follow(built.stdout, progress, sys.stderr)
        except KeyboardInterrupt:
            built.wait()
            return 130
    return built.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
