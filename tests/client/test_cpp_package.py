"""The C++ client as a package: a project of its own, that of client/cpp/README.md, finds and uses
it."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=240, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_another_project_finds_it(server, tmp_path):
    page = (ROOT / "client/cpp/README.md").read_text()
    for language, name in (("cmake", "CMakeLists.txt"), ("cpp", "main.cc")):
        (tmp_path / name).write_text(re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)[1])
    prefix = tmp_path / "prefix"
    run("cmake", "--install", BUILD, "--component", "client", "--prefix", prefix)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/consumer", server.address) == "int main() { return 0; }\n"
    assert server.requests[-1].model == "code-language"
