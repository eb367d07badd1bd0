"""Prebuilt ways to run: serve.sh on ready programs, the tarball in a bare Debian."""

import hashlib
import json
import os
import re
import subprocess

import pytest

import bare_root
from server_process import BUILD, ROOT

SERVE = ROOT / "deploy/serve.sh"
# Libraries of every Linux; all others must come in the tarball.
GLIBC = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "librt.so.1", "libdl.so.2", "libpthread.so.0",
         "libutil.so.1", "libresolv.so.2"}


def test_serve_uses_the_programs_it_is_shown(tmp_path):
    (tmp_path / "bin").symlink_to(BUILD / "bin")
    done = subprocess.run([SERVE, "--once", "--grpc_port=0", "--http_port=0"], text=True,
                          capture_output=True, timeout=120,
                          env={**os.environ, "LONGVIEW_PREFIX": str(tmp_path),
                               "LONGVIEW_MODELS": str(ROOT / "models/zoo")})
    assert done.returncode == 0, done.stderr
    assert "C++" in done.stdout
    assert f"Using the programs in {tmp_path}/bin" in done.stderr


@pytest.mark.parametrize("model, task, said", [
    ("models/zoo/page-type", "image-classification", "page.jpg\t"),
    ("models/zoo/page-layout", "object-detection", " found"),
    ("models/zoo/code-lm", "text-generation", "plan.h"),
    ("models/zoo/listops", "text-classification", "plan.h\t"),
    ("tests/golden/longformer/classification/model", "text-classification", "100 tokens\t"),  # Takes ids.
    ("tests/golden/longformer/text_fill_mask/model", "fill-mask", "plan.h\t"),
], ids=lambda value: value.removesuffix("/model").rpartition("/")[2])
def test_serve_asks_a_model_that_is_there(tmp_path, model, task, said):
    (tmp_path / "bin").symlink_to(BUILD / "bin")
    done = subprocess.run([SERVE, "--once", "--grpc_port=0", "--http_port=0", f"my-model={ROOT / model}"],
                          text=True, capture_output=True, timeout=120,
                          env={**os.environ, "LONGVIEW_PREFIX": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert f"A request to my-model ({task})" in done.stderr
    assert "code-language" not in done.stderr and said in done.stdout + done.stderr, done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory, tool):
    """The archive that `cpack` makes of the build."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run([tool("cpack"), "--config", BUILD / "CPackConfig.cmake", "-B", folder],
                   check=True, capture_output=True, timeout=900)
    packed, = folder.glob("*.tar.gz")
    return packed


@pytest.mark.slow
def test_the_tarball_is_whole(tarball, tmp_path):
    sums = tarball.with_name(tarball.name + ".sha256").read_text().split()[0]
    assert hashlib.sha256(tarball.read_bytes()).hexdigest() == sums
    subprocess.run(["tar", "-xzf", tarball, "-C", tmp_path], check=True)
    prefix = next(tmp_path.iterdir())
    for program in ("longview-server", "longview"):
        listing = subprocess.run(["ldd", prefix / "bin" / program], check=True, text=True,
                                 capture_output=True).stdout
        outside = {line.split()[0] for line in listing.splitlines()
                   if str(prefix) not in line and "/ld-linux" not in line}
        assert outside <= GLIBC
    bill = json.loads((prefix / "share/longview/sbom.spdx.json").read_text())
    names = {package["name"] for package in bill["packages"]}
    assert {"longview", "torch", "libgrpc29", "libssl3", "tokenizers"} <= names
    licences = {path.name for path in (prefix / "share/longview/licences").iterdir()}
    assert {"LICENSE", "torch-LICENSE", "libgrpc29.copyright"} <= licences


@pytest.mark.slow
def test_the_block_of_the_readme_packs_and_serves(tool, tmp_path):
    """The commands below "The tarball" but the build, as they stand; serving ends when it has answered."""
    tool("cpack")
    text = (ROOT / "deploy/README.md").read_text().split("## The tarball")[1]
    build, *rest = re.search(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1].splitlines()
    assert build.startswith("cmake --preset release && cmake --build build ") and len(rest) == 2
    (tmp_path / "build").symlink_to(BUILD)
    script = "\n".join(rest).replace("serve.sh", "serve.sh --once --grpc_port=0 --http_port=0")
    done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "C++" in done.stdout or "Shell" in done.stdout
    assert len(list((tmp_path / "dist").glob("longview-*-linux-x86_64.tar.gz"))) == 1


@pytest.mark.slow
def test_a_bare_debian_without_network_answers(tarball, tmp_path, tool):
    """No package is installed there, nothing can be fetched, /etc/hosts is missing."""
    if os.geteuid() != 0:
        pytest.skip("needs root for mmdebstrap, unshare and chroot")
    root = tmp_path / "root"
    bare_root.make(tool, "bookworm", root)
    subprocess.run(["tar", "-xzf", tarball, "-C", root / "opt"], check=True)
    name = next((root / "opt").iterdir()).name
    done = bare_root.run(tool, root, f"/opt/{name}/deploy/serve.sh", "--once", timeout=60)
    assert done.returncode == 0, done.stderr
    assert "serve.sh\tShell" in done.stdout
