"""Random models of given configurations, and a server with them that says what they cost."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
sys.path.append(str(ROOT / "tests/e2e"))

from server_process import Server  # noqa: E402


def prepare(folder, config, files=None):
    """A model directory without weights; `files`: name to text of what lies beside config.json. It is not warmed
    up."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "longview.json").write_text(json.dumps({"warmup": False}))
    for name, text in (files or {}).items():
        (folder / name).write_text(text)


def fill(folders, zeros=True):
    """Writes weights of prepared directories. Returns those that no weights make a model, and why."""
    problems, left = {}, list(folders)
    while left:
        command = [BUILD / "bin/random_model", *(["--zeros"] if zeros else []), *left]
        done = subprocess.run(command, capture_output=True, text=True)
        made = done.stdout.count(" tensors\n")
        if done.returncode != 0:
            problems[left[made]] = done.stderr.strip() or f"random_model ended with {done.returncode}"
            made += 1
        left = left[made:]
    return problems


def make(folder, config, files=None, zeros=True):
    """A model directory of this configuration. With zeros for weights it has the configuration's size and cost."""
    folder = pathlib.Path(folder)
    if (folder / ".made").exists():
        return folder
    prepare(folder, config, files)
    if problems := fill([folder], zeros):
        raise RuntimeError(f"{folder}: {problems[folder]}")
    (folder / ".made").touch()
    return folder


class Served:
    """A server's own account of its models."""

    def __init__(self, server):
        self.process = server.process
        self._url = f"http://127.0.0.1:{server.http_port}"

    def get(self, path):
        with urllib.request.urlopen(self._url + path, timeout=120) as answer:
            return json.load(answer)

    def post(self, path, body, timeout=600):
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def estimate(self, model, **what):
        """EstimateResponse: seconds, bytes, multiply_adds; `what` is num_tokens, or width and height."""
        return self.post("/v1/estimate", {"model": model, **what})


@contextlib.contextmanager
def serving(models, *flags, prefix=()):
    """models: name to directory; prefix: a command that becomes the server."""
    named = [f"{name}={path}" for name, path in models.items()]
    with Server(named, "--log_level=warning", *flags, prefix=prefix) as server:
        yield Served(server)
