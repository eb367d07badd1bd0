"""Stubs in every language: each command of proto/README.md as it stands, where its tools are."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# What a command needs on the path, and what it must leave in gen/.
LANGUAGES = {
    "Python": (["python3"], ["longview/v1/text_pb2.py", "longview/v1/text_pb2_grpc.py",
                             "inference/grpc_service_pb2_grpc.py"]),
    "Go": (["protoc", "protoc-gen-go", "protoc-gen-go-grpc"],
           ["longview/v1/text.pb.go", "longview/v1/text_grpc.pb.go",
            "inference/grpc_service_grpc.pb.go"]),
    "Rust": (["protoc", "protoc-gen-prost", "protoc-gen-tonic"],
             ["longview/v1/longview.v1.rs", "longview/v1/longview.v1.tonic.rs"]),
    "Java": (["protoc", "protoc-gen-grpc-java"],
             ["org/longview/v1/ClassifyRequest.java", "org/longview/v1/TextServiceGrpc.java",
              "org/longview/inference/GRPCInferenceServiceGrpc.java"]),
    "Node": (["npx"], ["text.ts", "longview/v1/TextService.ts"]),
    "C++": (["protoc", "grpc_cpp_plugin"],
            ["longview/v1/text.pb.cc", "longview/v1/text.grpc.pb.h"]),
}


def commands():
    """The command of each language: the line behind its comment."""
    text = (ROOT / "proto/README.md").read_text()
    return dict(re.findall(r"^# ([\w+]+): [^\n]*\n([^#\n]+)$", text, re.MULTILINE))


def test_every_language_has_a_command():
    assert commands().keys() == LANGUAGES.keys()


@pytest.mark.parametrize("language", [
    pytest.param(name, marks=pytest.mark.slow if name == "Node" else ())  # npx downloads.
    for name in LANGUAGES])
def test_the_command_makes_stubs(language, tmp_path):
    tools, files = LANGUAGES[language]
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} not on the path")
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    (tmp_path / "gen").mkdir()
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", commands()[language]], cwd=tmp_path, capture_output=True,
                          text=True, timeout=300, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    made = {file.relative_to(tmp_path / "gen").as_posix()
            for file in (tmp_path / "gen").rglob("*") if file.is_file()}
    assert made >= set(files), made
