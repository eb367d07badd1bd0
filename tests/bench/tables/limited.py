"""Programs within a limit of memory: what they answer there, what they take, and what Estimate says of it."""

import contextlib
import dataclasses
import http.client
import pathlib
import subprocess
import sys
import threading
import urllib.error

from tables.served import serving

# Admission leaves memory to the limit: what generates has more cache than there is, what does not has no bound.
FLAGS = ("--default_timeout_seconds=0", "--max_timeout_seconds=0", "--max_queue_seconds=86400")
PLENTY = 100 << 30
PEER = pathlib.Path(__file__).with_name("full_peer.py")


@dataclasses.dataclass
class Asked:
    """How a model is asked about a text of some tokens."""
    config: dict
    generates: bool = False

    @property
    def new(self):
        return {"max_tokens": 1} if self.generates else {}

    def ask(self, served, tokens):
        ids = [5] * tokens
        if self.generates:
            return served.post("/v1/completions", {"model": "m", "prompt": ids, **self.new}, timeout=3600)
        return served.post("/v1/classify", {"model": "m", "token_ids": ids}, timeout=3600)


@contextlib.contextmanager
def within(limit, asked, folder):
    """The model's server within a MemoryLimit."""
    cache = (PLENTY if limit.group else limit.limit // 4) if asked.generates else 0
    with serving({"m": folder}, *FLAGS, f"--cache_bytes={cache}", prefix=limit.prefix) as served:
        yield served


def needed(served, asked, tokens):
    """Bytes beside the loaded model that Estimate says."""
    said = served.estimate("m", num_tokens=tokens, **asked.new)
    return said["workspace_bytes"] + said["state_bytes"]


def predicted(served, asked, room, most):
    """The longest text whose predicted bytes fit the room, by bisection over Estimate."""
    low, high = 1, most
    if needed(served, asked, high) <= room:
        return high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if needed(served, asked, middle) <= room else (low, middle)
    return low


def answers(limit, asked, folder, tokens):
    """Whether a server of its own answers; False where memory ended it."""
    before = limit.killed()
    try:
        with within(limit, asked, folder) as served:
            try:
                asked.ask(served, tokens)
                return True
            except urllib.error.HTTPError as error:
                if error.code in (400, 404):
                    raise
                return False
            except (http.client.HTTPException, OSError):
                return False
            finally:
                if limit.killed() > before:
                    served.process.wait(60)
    except RuntimeError:  # Ended while it loaded.
        if limit.group and limit.killed() == before:
            raise
        return False


class Peak:
    """The most that a group held while a block ran, looked at every 20 ms."""

    def __init__(self, limit):
        self.bytes, self._limit, self._done = 0, limit, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self._done.wait(0.02):
            self.bytes = max(self.bytes, self._limit.used() or 0)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._done.set()
        self._thread.join()


def peer_answers(limit, attention, tokens):
    """Whether HuggingFace's BERT-base answers within the limit; other failures than memory's are raised."""
    done = subprocess.run([*limit.prefix, sys.executable, PEER, attention, str(tokens)], capture_output=True,
                          text=True)
    if done.returncode == 0:
        return True
    if done.returncode in (-9, 137) or "memory" in done.stderr:
        return False
    raise RuntimeError(done.stderr.strip().splitlines()[-1])
