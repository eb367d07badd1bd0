"""Every command of every README, copied and run against the bundled models."""

import os
import re
import subprocess
import sys

import pytest

from server_process import BUILD, ROOT

# The top level is given; build folders and installed dependencies beside it are somebody else's.
ROOMS = ["server", "proto", "kernels", "models", "client", "deploy", "tests"]
READMES = sorted([ROOT / "README.md",
                  *(path for room in ROOMS for path in (ROOT / room).rglob("README.md"))])

SHELLS = {"sh", "bash"}
# Commands that make a file which others read; these run first, so that each test may run alone.
MAKES = re.compile(r" > (\w+\.txt)$")

# Commands that a test cannot run, and why.
NOT_RUN = {
    r"^deploy/serve\.sh|^tests/run\.sh|^deploy/release\.sh|^deploy/demo\.sh":
        "installs packages and builds; run by CI itself",
    r"^cmake --install ": "tests/client has it",
    r"^cpack |^docker |^helm |^kubectl |^deploy/load/run\.sh": "tests/deploy has these",
    r"/path/to/directory": "a model of one's own",
    r"^python3 models/convert/": "checkpoints that are not here; tests/models has these",
    r"^mkdir -p gen$|-I proto\b": "tests/server/grpc/test_stubs.py runs these",
    r"tests/bench/": "minutes of measuring, beside peers that are not installed",
}


def blocks(path):
    """(language, text) of the fenced blocks of a file."""
    language, lines = None, []
    for line in path.read_text().splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        if fence and language is None:
            language, lines = fence[1], []
        elif fence:
            yield language, "\n".join(lines)
            language = None
        elif language is not None:
            lines.append(line)


def shell_commands(text):
    """The commands of a block: lines, joined while a backslash or a quote continues them."""
    command = ""
    for line in text.splitlines():
        command += line
        if command.endswith("\\"):
            command = command[:-1]
        elif subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode:
            command += "\n"
        else:
            if command.strip() and not command.strip().startswith("#"):
                yield command.strip()
            command = ""
    assert not command, f"not a whole command: {command}"


def every(language_names, split):
    return [pytest.param(piece, id=f"{path.relative_to(ROOT).parent}-{number}")
            for path in READMES
            for number, piece in enumerate(
                piece for language, text in blocks(path) if language in language_names
                for piece in split(text))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The repository as the commands see it; what they write stays out of the real one."""
    folder = tmp_path_factory.mktemp("checkout")
    for entry in ROOT.iterdir():
        if entry.name != "build":
            (folder / entry.name).symlink_to(entry)
    (folder / "build").symlink_to(BUILD)
    for path in READMES:
        for language, text in blocks(path):
            for command in shell_commands(text) if language in SHELLS else ():
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
    environment = {**os.environ, "LONGVIEW_SERVER": server.grpc, **more}
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), f"says nothing: {arguments[-1]}"
    assert not re.search(r'"error"', done.stdout), done.stdout
    return done.stdout


@pytest.mark.parametrize("command", every(SHELLS, shell_commands))
def test_shell(command, zoo_server, folder):
    for pattern, why in NOT_RUN.items():
        if re.search(pattern, command):
            pytest.skip(why)
    if made := MAKES.search(command):
        assert (folder / made[1]).stat().st_size
        return
    run(["bash", "-c", "set -o pipefail; " + here(command, zoo_server)], zoo_server, folder)


@pytest.mark.parametrize("script", every({"python"}, lambda text: [text]))
def test_python(script, zoo_server, folder, python_client):
    if not re.search(r"^import ", script, re.MULTILINE):  # It goes on after the block before it.
        script = "import longview\n" + script
    if re.search(r"^(from|import) (?!longview|openai|asyncio)", script, re.MULTILINE):
        pytest.skip("needs packages that are not installed")
    run([sys.executable, "-c", here(script, zoo_server)], zoo_server, folder,
        PYTHONPATH=str(python_client))


def test_models_that_examples_name_are_there():
    """Names that follow --model or "model" in the blocks of the READMEs."""
    bundled = {path.parent.name for path in (ROOT / "models/zoo").glob("*/config.json")}
    for path in READMES:
        for language, text in blocks(path):
            if language not in {"sh", "bash", "python"}:
                continue
            names = re.findall(r"""--model[ =]([\w.-]+)|model=["']?([\w.-]+)|"model": "([\w.-]+)""",
                               text)
            for name in filter(None, (name for found in names for name in found)):
                assert name in bundled, f"{path}: {name}"
