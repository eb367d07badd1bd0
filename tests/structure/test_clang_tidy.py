"""clang-tidy, by .clang-tidy, finds nothing in the units that the last commit and the working tree change; with --slow,
in none at all."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
DEPS = pathlib.Path(os.environ.get("DEPS_DIR", ROOT / ".deps"))
CLANG_TIDY = pathlib.Path(sys.executable).parent / "clang-tidy"
ROOMS = ("client", "kernels", "models", "server")
# Units that the default run reads; a commit of more is read by the slow one.
MOST_CHANGED = 6
FLAGS = ["-std=c++20", f"-I{ROOT}", f"-I{BUILD}/proto", f"-I{BUILD}/generated", "-DLONGVIEW_HD=",
         "-DAT_PER_OPERATOR_HEADERS", '-DLONGVIEW_VERSION=""', f"-idirafter{DEPS}/libtorch/torch/include",
         "-Wno-unknown-pragmas"]

needs_build = pytest.mark.skipif(not (BUILD / "proto").is_dir(), reason="no generated messages: build first")


def names(*command):
    found = subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    rooms = tuple(f"{room}/" for room in ROOMS)
    return sorted({name for name in found
                   if name.endswith(".cc") and name.startswith(rooms) and (ROOT / name).is_file()})


def flags_of(unit):
    """Units of one instruction set are compiled for it."""
    if "avx512" in unit or "amx" in unit:
        return ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512bf16", "-mfma", "-mf16c", "-mamx-tile",
                "-mamx-bf16", "-mamx-int8"]
    return ["-mavx2", "-mfma", "-mf16c"] if "avx2" in unit else []


def findings(unit):
    done = subprocess.run([CLANG_TIDY, "--quiet", "--config-file", ROOT / ".clang-tidy", unit, "--", *FLAGS,
                           *flags_of(str(unit))], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout or done.stderr


def findings_of_all(units):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return "\n".join(filter(None, pool.map(findings, units)))


@needs_build
def test_changed_units_are_clean():
    changed = names("diff", "--name-only", "HEAD")
    if subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD~1"], cwd=ROOT, capture_output=True).returncode == 0:
        changed += names("diff", "--name-only", "HEAD~1", "HEAD")
    assert findings_of_all(sorted(set(changed))[:MOST_CHANGED]) == ""


@needs_build
@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_all_units_are_clean():
    units = names("ls-files")
    assert len(units) > 500
    assert findings_of_all(units) == ""


@pytest.mark.parametrize("check, violation", [
    ("bugprone-use-after-move", "int F(std::string a) { std::string b = std::move(a); return a.size() + b.size(); }"),
    ("performance-unnecessary-copy-initialization",
     "int G(const std::string& a) { const std::string b = a; return b.size(); }"),
    ("modernize-use-nullptr", "int* H() { return 0; }"),
    ("readability-container-size-empty", "bool I(const std::string& a) { return a.size() == 0; }"),
])
def test_a_violation_is_found(check, violation, tmp_path):
    planted = tmp_path / "planted.cc"
    planted.write_text(f"#include <string>\n#include <utility>\n\n{violation}\n")
    assert check in findings(planted)
