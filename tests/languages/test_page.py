"""Programs of client/README.md run as they stand. Its commands of the shell and of Python are run by
tests/e2e/test_readme_commands.py."""

import re
import shutil
import subprocess

import pytest

from programs import class_path, require
from server_process import ROOT

pytestmark = pytest.mark.languages

PAGE = (ROOT / "client/README.md").read_text()


def javascript(program, folder, scratch):
    (scratch / "ask.mjs").write_text(program)
    (scratch / "node_modules").symlink_to(folder / "node_modules")
    return ["node", "ask.mjs"]


def go(program, folder, scratch):
    (scratch / "main.go").write_text(program)
    for name in ("go.mod", "go.sum"):
        shutil.copy(folder / name, scratch)
    (scratch / "proto").symlink_to(folder / "proto")
    return ["go", "run", "main.go"]


def rust(program, folder, scratch):
    (scratch / "src").mkdir()
    (scratch / "src/main.rs").write_text(program)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / "tests/languages/rust" / name, scratch)
    return ["cargo", "run", "--quiet", "--offline", "--target-dir", folder / "target-page"]


def java(program, folder, scratch):
    (scratch / "Ask.java").write_text(program)
    return ["java", "-cp", class_path(folder), "Ask.java"]


FENCES = {"js": javascript, "go": go, "rust": rust, "java": java}


def test_each_language_has_a_program():
    assert set(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)) == {"sh", "python", *FENCES}


@pytest.mark.parametrize("fence", FENCES)
def test_a_program_runs(fence, server, tmp_path):
    program = re.search(rf"^```{fence}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    folder = require(FENCES[fence].__name__)
    command = FENCES[fence](program.replace("localhost:8080", server.http), folder, tmp_path)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    status, answer = server.post_json("/v1/embeddings", {"model": "code-language", "input": "int main() {}"})
    assert done.stdout.splitlines()[0] == str(len(answer["data"][0]["embedding"]))
