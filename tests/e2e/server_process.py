"""Starts the real longview-server and talks to it; used by every black-box test."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
SERVER = BUILD / "bin/longview-server"
CLIENT = BUILD / "bin/longview"
ZOO = ROOT / "models/zoo"
GOLDEN = pathlib.Path(os.environ.get("LONGVIEW_GOLDEN") or ROOT / "tests/golden")


class Server:
    """A running server on free ports. Use as a context manager; leaving sends SIGINT.

    prefix: a command that becomes the server, such as prlimit with its arguments.
    """

    def __init__(self, models, *flags, env=None, wait=True, ready_seconds=120, prefix=()):
        self.log_file = tempfile.NamedTemporaryFile(mode="w+", suffix=".log", prefix="longview-")
        command = [*prefix, str(SERVER), "--grpc_port=0", "--http_port=0", "--log_format=json",
                   *flags]
        command += [str(model) for model in models]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log_file,
                                        text=True, env={**os.environ, **(env or {})})
        self.grpc_port = self.http_port = None
        if wait:
            self.wait_ready(ready_seconds)

    def wait_ready(self, seconds=120):
        """Reads the one line of stdout; the ports are known after it."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        match = re.fullmatch(r"longview ready grpc=(-?\d+) http=(-?\d+)\n", line)
        if not match:
            self.process.wait(10)
            raise RuntimeError(f"not ready: {line!r}, exit {self.process.returncode}\n{self.log()}")
        self.grpc_port, self.http_port = int(match[1]), int(match[2])

    @property
    def http(self):
        return f"127.0.0.1:{self.http_port}"

    @property
    def grpc(self):
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def url(self):
        return f"http://{self.http}"

    def log(self):
        """The lines so far, with those of answers that came before this call.

        Lines are written a moment after their answers; under load the log never comes to rest, and
        its last line may be half written.
        """
        length, end = -1, time.monotonic() + 0.5
        while length != (length := os.path.getsize(self.log_file.name)) and time.monotonic() < end:
            time.sleep(0.05)
        text = pathlib.Path(self.log_file.name).read_text(errors="replace")
        return text[:text.rfind("\n") + 1]

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Returns (status, headers, body bytes); errors are answers too."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        elif isinstance(body, str):
            body = body.encode()
        call = urllib.request.Request(self.url + path, data=body, method=method,
                                      headers=headers or {})
        try:
            with urllib.request.urlopen(call, timeout=timeout) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, body=b"", **kwargs):
        return self.request("POST", path, body, **kwargs)

    def post_json(self, path, body, **kwargs):
        """Posts JSON; returns (status, parsed answer)."""
        status, _, answer = self.post(path, body, **kwargs)
        return status, json.loads(answer)

    metrics_headers: dict[str, str] = {}  # For a server whose /metrics asks for a key.

    def metric(self, name, **labels):
        """The sum of a metric's samples whose labels include these."""
        total, found = 0.0, False
        for line in self.get("/metrics", headers=self.metrics_headers)[2].decode().splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if not match or match[1] != name:
                continue
            have = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            if all(have.get(key) == value for key, value in labels.items()):
                total, found = total + float(match[3]), True
        assert found, f"no sample of {name}{labels}"
        return total

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def settles_below(self, limit):
        """Waits until the resident memory is at most `limit` bytes: an idle server gives back
        what a burst took, a leak stays."""
        wait_until(lambda: self.resident_bytes() <= limit, 60, f"at most {limit} resident bytes")

    def stop(self, sig=signal.SIGINT, seconds=60):
        """Signals, waits, returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill() if exception[0] else self.stop()
        self.process.stdout.close()
        self.log_file.close()


def wait_until(condition, seconds=10, what="condition"):
    """Polls until condition() is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} not reached within {seconds} s"
        time.sleep(0.01)
