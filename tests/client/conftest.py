"""Installs client/python as a user would and puts it on the path."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def longview(tmp_path_factory):
    """The package as pip builds it, stubs generated with this environment's grpcio-tools."""
    target = tmp_path_factory.mktemp("site")
    # A copy: pip builds in the source tree and would leave its files there.
    source = tmp_path_factory.mktemp("source") / "python"
    shutil.copytree(ROOT / "client" / "python", source, ignore=shutil.ignore_patterns("build"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                    "--no-build-isolation", "--target", target, source],
                   check=True)
    sys.path.insert(0, str(target))
    import longview
    assert pathlib.Path(longview.__file__).is_relative_to(target)
    return longview
