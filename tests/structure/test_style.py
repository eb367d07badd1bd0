"""The style that tools can check: clang-format, ruff, shellcheck, and how comments begin.

Each check is also run on a planted violation."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(sys.executable).parent
C_SUFFIXES = (".h", ".cc", ".cu", ".cuh")
# A comment says what it is about first; a reader must not have to guess the noun.
RIDDLE = re.compile(r"//[/!]? (Of|What|Who|Whose) ")


def tracked(suffixes):
    listing = subprocess.run(["git", "ls-files", "-z", *(f"*{suffix}" for suffix in suffixes)], cwd=ROOT,
                             check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in paths if not path.is_symlink()]


def run(tool, *arguments, files):
    """The tool's complaints, none if it is content."""
    assert files
    done = subprocess.run([TOOLS / tool, *arguments, *files], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stdout + done.stderr) or f"exit {done.returncode}"


def format_complaints(files):
    return run("clang-format", "--dry-run", "-Werror", "--style=file", files=files)


def ruff_complaints(files):
    return run("ruff", "check", "--no-cache", "--config", ROOT / ".ruff.toml", files=files)


def shell_complaints(files):
    return run("shellcheck", "--severity=warning", files=files)


def riddles(files):
    return "\n".join(f"{path}:{i}: {line.strip()}" for path in files
                     for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
                     if RIDDLE.search(line))


CHECKS = [
    (format_complaints, C_SUFFIXES, "int  Two( int a ){return a+1 ;}\n"),
    (riddles, C_SUFFIXES, "int count = 0;  // Of the others.\n"),
    (ruff_complaints, (".py",), "import os\n"),
    (shell_complaints, (".sh",), "#!/bin/sh\ncd $1\n"),
]
NAMES = [check[0].__name__ for check in CHECKS]


@pytest.mark.parametrize("complaints, suffixes, violation", CHECKS, ids=NAMES)
def test_the_tree_has_style(complaints, suffixes, violation):
    del violation
    assert complaints(tracked(suffixes)) == ""


@pytest.mark.parametrize("complaints, suffixes, violation", CHECKS, ids=NAMES)
def test_a_violation_is_seen(complaints, suffixes, violation, tmp_path):
    planted = tmp_path / f"planted{suffixes[0]}"
    (tmp_path / ".clang-format").write_bytes((ROOT / ".clang-format").read_bytes())
    planted.write_text(violation)
    assert complaints([planted]) != ""
