"""Facts of the linked server: no protobuf symbol leaks out, one OpenMP runtime is mapped."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build")) / "bin/longview-server"


@pytest.fixture(scope="module")
def server():
    assert SERVER.exists(), f"{SERVER} is not built"
    return SERVER


def test_no_protobuf_symbol_is_exported(server):
    symbols = subprocess.run(["nm", "-DC", "--defined-only", server], check=True,
                             capture_output=True, text=True).stdout
    leaked = [line for line in symbols.splitlines() if "google::protobuf" in line]
    assert not leaked, leaked[:5]


def test_libtorch_is_the_cpu_part_only(server):
    needed = subprocess.run(["readelf", "-d", server], check=True, capture_output=True,
                            text=True).stdout
    names = re.findall(r"NEEDED.*\[(.*)\]", needed)
    assert "libtorch_cpu.so" in names
    assert not {"libtorch.so", "libtorch_cuda.so"} & set(names)
    assert not [name for name in names if name.startswith("libprotobuf")]


def test_one_openmp_runtime(server):
    listing = subprocess.run(["ldd", server], check=True, capture_output=True, text=True).stdout
    runtimes = {os.path.realpath(path) for path in re.findall(r"=> (\S*lib(?:gomp|omp|iomp5)\S*)", listing)}
    assert len(runtimes) == 1, runtimes
