"""Packages of PyPI and environments for them, each fetched or made once. Skips where PyPI cannot be had."""

import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile

import pytest

from server_process import ROOT

INDEX = "https://pypi.org/simple"
KEPT = pathlib.Path(os.environ.get("LONGVIEW_SUITES", ROOT / ".deps/suites"))
SECONDS = 600


def fetch(address, wanted):
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            return answer.read(), answer.url
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"{wanted} cannot be had: {error}")


def unpack(packed, name, folder):
    if name.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(packed)) as opened:
            opened.extractall(folder)
    else:
        with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
            opened.extractall(folder, filter="data")


def unpacked(project, name):
    """The folder with what the project's file of this name holds."""
    folder = KEPT / re.sub(r"\.(tar\.gz|whl)$", "", name)
    if folder.exists():
        return folder
    KEPT.mkdir(parents=True, exist_ok=True)
    page, base = fetch(f"{INDEX}/{project}/", project)
    link = re.search(rf'href="([^"]*/{re.escape(name)})', page.decode())
    if link is None:
        pytest.skip(f"the index has no {name}")
    packed, _ = fetch(urllib.parse.urljoin(base, link[1]), name)
    with tempfile.TemporaryDirectory(dir=KEPT) as fresh:
        contents = pathlib.Path(fresh) / "contents"
        unpack(packed, name, contents)
        contents.rename(folder)
    return folder


def python(name, requirements):
    """The interpreter of the environment of this name, which has these packages."""
    environment = KEPT / name
    ready = environment / "ready"
    if not ready.exists() or ready.read_text().split() != requirements:
        for command in ([sys.executable, "-m", "venv", environment],
                        [environment / "bin/python", "-m", "pip", "install", "--quiet", *requirements]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            if done.returncode:
                pytest.skip(f"no environment {name}: {done.stderr.strip().splitlines()[-1]}")
        ready.write_text(" ".join(requirements))
    return environment / "bin/python"
