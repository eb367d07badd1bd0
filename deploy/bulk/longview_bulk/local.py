"""Workers as processes of this machine; one that dies is replaced, its unfinished chunks are done again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import List, Sequence

from longview_bulk.parts import Summary
from longview_bulk.progress import Progress

# Deaths of a worker in a row without a finished chunk in between: something kills it.
_DEATHS = 5
# Exit statuses that another try would not change.
FINAL = (0, 1, 2, 3, 130)


class _Worker:
    def __init__(self, command: List[str], progress: Progress) -> None:
        self._command, self._progress, self._deaths = command, progress, 0
        self._stopped = False
        self.status = 0
        self.process = self._start()
        self.thread = threading.Thread(target=self._follow, daemon=True)

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)

    def stop(self) -> None:
        self._stopped = True
        self.process.terminate()

    def _follow(self) -> None:
        while True:
            self._read_events()
            self.status = self.process.wait()
            if self.status in FINAL or self._stopped:
                return
            self._deaths += 1
            if self._deaths > _DEATHS:
                self._progress.say(f"worker {self.process.pid} ended with status {self.status}, the {self._deaths}th "
                                   "in a row without a finished chunk; giving up")
                self.status = 1
                return
            self._progress.say(f"worker {self.process.pid} ended with status {self.status} and is replaced")
            self.process = self._start()

    def _read_events(self) -> None:
        partial = 0
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except ValueError:  # The last line of a worker that was killed.
                break
            partial += event["begun"]
            self._progress.begun(event["begun"])
            if "finished" in event:
                summary = Summary(**event["finished"])
                partial -= summary.rows
                self._deaths = 0
                self._progress.finished(summary)
        self._progress.begun(-partial)
        self.process.stdout.close()


def run_local(arguments: Sequence[str], workers: int, progress: Progress) -> int:
    """The workers' exit status, the worst of them; 0 or 3 if all chunks are written."""
    command = [sys.executable, "-m", "longview_bulk", *arguments, f"--of={workers}", "--events"]
    found = [_Worker([*command, f"--index={index}"], progress) for index in range(workers)]
    try:
        for worker in found:
            worker.thread.start()
        while any(worker.thread.is_alive() for worker in found):
            for worker in found:
                worker.thread.join(0.1)
            if any(not worker.thread.is_alive() and worker.status not in (0, 3) for worker in found):
                break
    finally:
        for worker in found:
            if worker.thread.is_alive():
                worker.stop()
        for worker in found:
            worker.thread.join()
    return next((worker.status for worker in found if worker.status in (1, 2, 130)),
                max(worker.status for worker in found))
