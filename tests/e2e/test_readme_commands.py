"""Every command of every page, copied and run against the bundled models; what is not run says why (not_run.py)."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import not_run
from pages import PAGES, SHELLS, blocks, commands, indented_blocks, name_of, shell_commands
from server_process import BUILD, ROOT

# Commands that make a file which others read; these run first, so that each test may run alone.
MAKES = re.compile(r" > (\w+\.txt)$")
DEPS = os.environ.get("DEPS_DIR", ROOT / ".deps")


def numbered(pieces):
    """Parameters of a test; ids count within the page."""
    counts, found = {}, []
    for page, piece in pieces:
        counts[page] = counts.get(page, -1) + 1
        found.append(pytest.param(page, piece, id=f"{page.removesuffix('/README.md')}-{counts[page]}"))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The repository as the commands see it; what they write stays out of the real one."""
    folder = tmp_path_factory.mktemp("checkout")
    for entry in ROOT.iterdir():
        if entry.name != "build":
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(BUILD)
    for _, command in commands():
        if MAKES.search(command):
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def python_client(tmp_path_factory):
    """The package with its stubs, as `pip install client/python` makes it."""
    target = tmp_path_factory.mktemp("python")
    for file in (ROOT / "client/python/longview").glob("*.py"):
        (target / "longview").mkdir(exist_ok=True)
        (target / "longview" / file.name).write_text(file.read_text())
    protos = [f"longview/v1/{name}.proto" for name in ("models", "text", "types", "vision")]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}",
                    f"--python_out={target}", f"--grpc_python_out={target}", *protos],
                   check=True, cwd=ROOT / "proto")
    (target / "longview/v1/__init__.py").touch()
    return target


def here(command, server):
    """The command with the ports of this test's server."""
    return command.replace("localhost:8080", server.http).replace("localhost:9000", server.grpc)


def run(arguments, server, folder, **more):
    path = f"{BUILD / 'bin'}:{DEPS}/bin:{os.environ['PATH']}"
    environment = {**os.environ, "LONGVIEW_SERVER": server.grpc, "PATH": path, **more}
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), f"says nothing: {arguments[-1]}"
    assert not re.search(r'"error":(?!"")', done.stdout), done.stdout
    return done.stdout


def missing_program(command):
    """The first word of a command, where no such program is here."""
    program = next(word for word in shlex.split(command, comments=True) if "=" not in word)
    return None if "/" in program or shutil.which(program, path=f"{BUILD / 'bin'}:{DEPS}/bin:{os.environ['PATH']}") \
        else program


@pytest.mark.parametrize("page, command", numbered(
    (page, command) for page, command in commands() if not not_run.entry(page, command)))
def test_shell(page, command, zoo_server, folder):
    if made := MAKES.search(command):
        assert (folder / made[1]).stat().st_size
        return
    if (program := missing_program(command)) in {"ghz", "grpcurl"}:
        assert f"`{program}`" in (ROOT / page).read_text(), f"{page} does not say how to get {program}"
        pytest.skip(f"{program} is not here: tests/support/install_clients.sh")
    run(["bash", "-c", "set -o pipefail; " + here(command, zoo_server)], zoo_server, folder)


@pytest.mark.parametrize("page, script", numbered(
    (name_of(page), text) for page in PAGES for language, text in blocks(page)
    if language == "python" and name_of(page) not in not_run.OWN_PYTHON))
def test_python(page, script, zoo_server, folder, python_client):
    if not re.search(r"^import ", script, re.MULTILINE):  # It goes on after the block before it.
        script = "import longview\n" + script
    run([sys.executable, "-c", here(script, zoo_server)], zoo_server, folder,
        PYTHONPATH=str(python_client))


def test_an_answer_in_the_readme_is_the_servers(zoo_server, folder):
    """What JSON blocks show, behind the command that asks; times and scores are a run's own."""
    shown = 0
    for page in PAGES:
        last = None
        for language, text in blocks(page):
            if language == "json":
                answer = json.loads(run(["bash", "-c", here(last, zoo_server)], zoo_server, folder))
                assert comparable(json.loads(text)) == comparable(answer), page
                shown += 1
            elif language in SHELLS:
                last = shell_commands(text)[-1]
    assert shown


def comparable(value):
    """Fractions as their type: they differ between machines."""
    if isinstance(value, dict):
        return {key: "a number" if key.endswith("_seconds") else comparable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [comparable(entry) for entry in value]
    return "a number" if isinstance(value, float) else value


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    """A block without a language would be run by nobody."""
    known = {*SHELLS, "python", "json", *not_run.ELSEWHERE}
    assert not [text for language, text in blocks(page) if language not in known]
    assert not indented_blocks(page)


def test_what_is_not_run_has_a_reason_that_holds():
    """No entry is left over, and tests and scripts that reasons name are there."""
    used = [not_run.entry(*command) for command in commands()]
    assert not [row for row in not_run.NOT_RUN if row not in used]
    languages = {language for page in PAGES for language, _ in blocks(page)}
    assert not set(not_run.ELSEWHERE) - languages
    assert not set(not_run.OWN_PYTHON) - {name_of(page) for page in PAGES}
    for reason in [row[2] for row in not_run.NOT_RUN] + [*not_run.ELSEWHERE.values(), *not_run.OWN_PYTHON.values()]:
        for path in re.findall(r"\b(?:tests|deploy)/[\w/.]*\w", reason):
            assert (ROOT / path).exists(), reason


def scripts(command):
    """[(script of the repository, its flags)] of a command."""
    parts = re.split(r"&&|\|\||;|\|", re.sub(r"\s#\s.*", "", command, flags=re.DOTALL))
    for part in parts:
        if path := re.search(r"\b(?:tests|deploy|models|client)/[\w/]+\.(?:py|sh)\b", part):
            yield path[0], re.findall(r"(?<!\S)--[\w-]+", part[path.end():])


@pytest.mark.parametrize("page, command", numbered(
    (page, command) for page, command in commands()
    if (row := not_run.entry(page, command)) and any(scripts(command)) and "pytest" not in command))
def test_scripts_that_are_not_run_are_there_and_know_their_flags(page, command):
    for path, flags in scripts(command):
        assert (ROOT / path).exists(), f"{page}: {path}"
        text = "".join(file.read_text() for file in (ROOT / path).parent.glob(pathlib.Path(path).stem + ".*"))
        assert not [flag for flag in flags if flag not in text], command


def test_models_that_examples_name_are_there():
    """Names that follow --model or "model" in the blocks of the pages."""
    bundled = {path.parent.name for path in (ROOT / "models/zoo").glob("*/config.json")}
    for page in PAGES:
        for language, text in blocks(page):
            if language not in {"sh", "python"} or "tests/bench/" in text:
                continue
            if language == "python" and name_of(page) in not_run.OWN_PYTHON:
                continue
            names = re.findall(r"""--model[ =]([\w.-]+)|model=["']?([\w.-]+)|"model": "([\w.-]+)""",
                               text)
            for name in filter(None, (name for found in names for name in found)):
                assert name in bundled, f"{page}: {name}"


def test_a_bad_page_is_noticed(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("Text:\n\n    longview classify x\n\n* a list\n\n    of paragraphs\n\n```\nbare\n```\n"
                    "```sh\nfor x in 1 2; do\n  echo $x\ndone\n# a comment\necho a \\\n  b\n```\n")
    assert indented_blocks(page) == ["longview classify x"]
    assert [language for language, _ in blocks(page)] == ["", "sh"]
    assert shell_commands(blocks(page)[1][1]) == ["for x in 1 2; do\n  echo $x\ndone", "echo a   b"]
    assert not_run.entry("README.md", "build/bin/longview models") is None
