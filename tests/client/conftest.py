"""Builds the wheel of client/python, installs it as a user would and puts it on the path."""

import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

sys.path.insert(0, str(HERE))

from fake_server import FakeServer  # noqa: E402


@pytest.fixture(scope="session")
def longview(tmp_path_factory):
    """The package as pip builds it, stubs generated with this environment's grpcio-tools."""
    target = tmp_path_factory.mktemp("site")
    # A copy: pip builds in the source tree and would leave its files there.
    source = tmp_path_factory.mktemp("source") / "python"
    shutil.copytree(ROOT / "client" / "python", source, ignore=shutil.ignore_patterns("build"))
    pip = [sys.executable, "-m", "pip"]
    offline = ["--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", target, source], check=True)
    wheel, = target.glob("longview-*-py3-none-any.whl")
    subprocess.run([*pip, "install", *offline, "--target", target, wheel], check=True)
    sys.path.insert(0, str(target))
    import longview
    assert pathlib.Path(longview.__file__).is_relative_to(target)
    assert wheel.name.split("-")[1] == longview.__version__
    for file in ("py.typed", "v1/text_pb2.pyi", "v1/text_pb2_grpc.py"):
        assert (target / "longview" / file).exists(), file
    return longview


@pytest.fixture
def server(longview):
    fake = FakeServer(longview)
    yield fake
    fake.server.stop(None).wait()
