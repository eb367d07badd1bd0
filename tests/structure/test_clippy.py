"""Clippy finds nothing in the Rust code behind the tokenizers (slow: it compiles what the crate depends on)."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATE = ROOT / "models/text/tokenizer_ffi"
DEPS = pathlib.Path(os.environ.get("DEPS_DIR", ROOT / ".deps"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800),
              pytest.mark.skipif(shutil.which("cargo-clippy") is None, reason="rustup component add clippy")]


def clippy(crate):
    return subprocess.run(["cargo", "clippy", "--offline", "--locked", "--all-targets"], cwd=crate, capture_output=True,
                          text=True, env={**os.environ, "CARGO_TARGET_DIR": str(DEPS / "clippy-target")})


def test_the_crate_is_clean():
    done = clippy(CRATE)
    assert done.returncode == 0, done.stderr


def test_a_violation_is_found(tmp_path):
    crate = shutil.copytree(CRATE, tmp_path / "crate", ignore=shutil.ignore_patterns("target"))
    source = crate / "src/lib.rs"
    source.write_text(source.read_text() + "\npub fn planted(texts: &Vec<u8>) -> bool {\n    texts.len() == 0\n}\n")
    done = clippy(crate)
    assert done.returncode != 0 and "len_zero" in done.stderr
