"""How far a run is, on stderr: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import Optional, TextIO

from longview_bulk.parts import Summary


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


class Progress:
    """Sums up what all workers tell; from any thread. `total` and `done` are rows."""

    def __init__(self, total: int, stream: Optional[TextIO] = None) -> None:
        self.total, self.done, self.errors, self.partial = total, 0, 0, 0
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._interval = 0.5 if self._terminal else 10.0
        self._begun = self._last = time.monotonic()
        self._before = 0
        self._lock = threading.Lock()

    def skip(self, rows: int, errors: int) -> None:
        """Rows that were there when the run began."""
        self.done += rows
        self.errors += errors
        self._before += rows

    def begun(self, rows: int) -> None:
        with self._lock:
            self.partial += rows
            self._show()

    def finished(self, summary: Summary) -> None:
        with self._lock:
            self.partial -= summary.rows
            self.done += summary.rows
            self.errors += summary.errors
            self._show()

    def line(self, seconds: float) -> str:
        rows = self.done + self.partial
        rate = (rows - self._before) / max(seconds, 1e-9)
        left = clock((self.total - rows) / rate) if rate > 0 else "?"
        return f"{rows:,} of {self.total:,} rows, {rate:.1f} rows/s, {left} left, {self.errors:,} errors"

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._last < self._interval:
            return
        self._last = now
        text = self.line(now - self._begun)
        self._stream.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """A line of its own."""
        with self._lock:
            self._stream.write(f"\r\x1b[K{text}\n" if self._terminal else f"{text}\n")
            self._stream.flush()
