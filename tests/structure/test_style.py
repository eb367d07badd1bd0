"""The style that tools can check: clang-format, ruff, mypy, shellcheck, and how comments begin.

Each check is also run on a planted violation."""

import os
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
# The first word of a comment, on the first line of a block or behind code, names no thing either.
FIRST_RIDDLE = re.compile(r"(As|It|Likewise|That|The same|These|They|Those|Where|Which)\b")
COMMENT = re.compile(r"(.*?)//[/!]? (.*)")


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


def riddle_lines(text):
    """Numbers and lines of comments that do not say first what they are about."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.fullmatch(line)
        alone = comment is not None and not comment[1].strip()
        begins = comment is not None and '"' not in comment[1] and not (alone and in_block)
        if RIDDLE.search(line) or (begins and FIRST_RIDDLE.match(comment[2])):
            yield number, line.strip()
        in_block = alone


def mypy_complaints(files):
    files = [path for path in files if "client/python/proto" not in str(path)]
    return run("mypy", "--config-file", ROOT / ".mypy.ini", "--cache-dir", os.devnull, files=files)


def riddles(files):
    return "\n".join(f"{path}:{number}: {line}" for path in files
                     for number, line in riddle_lines(path.read_text(encoding="utf-8")))


CHECKS = [
    (format_complaints, C_SUFFIXES, "int  Two( int a ){return a+1 ;}\n"),
    (riddles, C_SUFFIXES, "int count = 0;  // Of the others.\n"),
    (ruff_complaints, (".py",), "import os\n"),
    (mypy_complaints, (".py",), "def count():\n    return len(1)\n"),
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


@pytest.mark.parametrize("comment", ["// Where they are.\nint* places;\n", "int first;\nint second;  // Likewise.\n",
                                     "/// The same for texts.\n// Thread-safe.\nvoid Run();\n"])
def test_a_comment_that_begins_with_a_riddle_is_seen(comment, tmp_path):
    planted = tmp_path / "planted.h"
    planted.write_text(comment)
    assert riddles([planted])


def test_only_the_first_word_of_a_comment_is_judged():
    assert not list(riddle_lines('// A sentence, of which the\n// Which is the second line.\nRun("a  // As b");\n'))
