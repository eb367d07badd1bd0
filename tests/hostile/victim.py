"""A server under limits, attacked from another address while ordinary clients look."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys

import grpc

from probe import CLASSIFY, HEALTH, SHORT_MESSAGE
from server_process import ZOO, Server

ATTACKER = "127.0.0.2"  # The ordinary clients are at 127.0.0.1.
MOST_BYTES = 300 << 20  # For any single client's doing.
LIVEZ_SECONDS = 1.0
SHORT_SECONDS = 2.0
ADDRESS_SPACE = 14 << 30  # Beyond it the process fails; the machine goes on.



class Victim(Server):
    """Serves bundled models by name, or directories by path. `spoiled`: no use for other attacks."""

    def __init__(self, *models, flags=(), descriptors=4096):
        paths = [ZOO / model if (ZOO / model).is_dir() else model for model in models]
        super().__init__([",".join(str(path) for path in paths)], "--log_level=warning", *flags,
                         prefix=("prlimit", f"--as={ADDRESS_SPACE}", f"--nofile={descriptors}"))

        self.spoiled = False

    def end(self):
        """At once: how servers leave is tested elsewhere."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log_file.close()

    def __exit__(self, *exception):
        self.end()

    def _kilobytes(self, field):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", text)[1])

    @contextlib.contextmanager
    def watched(self, most_bytes=MOST_BYTES, livez=LIVEZ_SECONDS, short=SHORT_SECONDS):
        """Around an attack: prints figures and asserts the bounds and that all goes on.

        Yields a dict for more figures of the attack's own.
        """
        self.assert_alive()  # The first request over each transport is behind it.
        self.spoiled = True  # Until all bounds have held.
        before = self._kilobytes("VmRSS")
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # VmHWM begins anew.
        probe = subprocess.Popen([sys.executable, pathlib.Path(__file__).parent / "probe.py",
                                  str(self.http_port), self.grpc], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        probe.stdout.readline()
        figures = {}
        try:
            yield figures
        finally:
            seen = json.loads(probe.communicate(timeout=120)[0])
            died = self.process.poll()
            grown = None if died is not None else (self._kilobytes("VmHWM") - before) << 10
            figures.update(
                exit=died, grown_MB=None if grown is None else round(grown / 1e6),
                **{f"{name}_s": round(look["longest"], 3) for name, look in seen.items()},
                looks=tuple(look["count"] for look in seen.values()),
                failed=tuple(look["failed"] for look in seen.values()))
            print("\n  " + "  ".join(f"{name} {value}" for name, value in figures.items()))
        assert died is None, f"the server died with {died}: {self.log()[-2000:]}"
        assert grown <= most_bytes, figures
        for name, most in (("livez", livez), ("health", livez), ("short", short), ("short_grpc", short)):
            assert not seen[name]["failures"], (name, seen[name])
            assert seen[name]["longest"] <= most, (name, figures)
        self.assert_alive()
        self.spoiled = False

    def assert_alive(self):
        """Every transport answers, over new connections."""
        assert self.get("/livez", timeout=10)[0] == 200
        status, answer = self.post_json("/v1/classify", {"model": "code-language",
                                                         "text": "import os\n"}, timeout=10)
        assert status == 200, answer
        with self.channel() as channel:
            assert channel.unary_unary(HEALTH)(b"", timeout=10) == b"\x08\x01"  # SERVING
            assert channel.unary_unary(CLASSIFY)(SHORT_MESSAGE, timeout=10)

    def channel(self):
        return grpc.insecure_channel(self.grpc, [
            ("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1)])
