"""The sources of openai's Python client, with its own tests, and an environment that runs them."""

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

import pytest

from server_process import ROOT

VERSION = "3.52.0"
INDEX = "https://pypi.org/simple/openai/"
KEPT = pathlib.Path(os.environ.get("LONGVIEW_SUITES", ROOT / ".deps/suites"))
# As the client's pyproject.toml has them, and what its fixtures import.
REQUIREMENTS = [f"openai=={VERSION}", "httpx-aiohttp==0.2.0", "inline-snapshot", "pytest==9.2.0",
                "pytest-asyncio==1.5.0", "pytest-xdist==3.8.0", "rich==13.9.4", "trio"]
SECONDS = 600


def fetch(address):
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            return answer.read(), answer.url
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"openai {VERSION} cannot be had: {error}")


def sources():
    """The folder of the unpacked source distribution, fetched once."""
    folder = KEPT / f"openai-{VERSION}"
    if folder.exists():
        return folder
    KEPT.mkdir(parents=True, exist_ok=True)
    page, base = fetch(INDEX)
    link = re.search(rf'href="([^"]*/openai-{re.escape(VERSION)}\.tar\.gz)', page.decode())
    if link is None:
        pytest.skip(f"the index has no sources of openai {VERSION}")
    packed, _ = fetch(urllib.parse.urljoin(base, link[1]))
    with tempfile.TemporaryDirectory(dir=KEPT) as fresh:
        archive = pathlib.Path(fresh) / "sources.tar.gz"
        archive.write_bytes(packed)
        with tarfile.open(archive) as opened:
            opened.extractall(fresh, filter="data")
        (pathlib.Path(fresh) / folder.name).rename(folder)
    return folder


def python():
    """The interpreter of the environment, made once."""
    environment = KEPT / "environment"
    ready = environment / f"ready-{VERSION}"
    if not ready.exists():
        for command in ([sys.executable, "-m", "venv", environment],
                        [environment / "bin/python", "-m", "pip", "install", "--quiet", *REQUIREMENTS]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            if done.returncode:
                pytest.skip(f"no environment for openai {VERSION}: {done.stderr.strip().splitlines()[-1]}")
        ready.touch()
    return environment / "bin/python"
