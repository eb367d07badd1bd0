"""Directions of includes: the picture in README.md, checked on every source file."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)

ROOMS = ("proto", "kernels", "models", "server", "client")
# Include prefixes by library; generated protobuf headers count as the room proto.
LIBRARIES = {
    "LibTorch": ("ATen/", "torch/", "c10/"),
    "gRPC": ("grpc/", "grpcpp/", "grpc++"),
    "protobuf": ("google/protobuf/",),
    "Abseil": ("absl/",),
    "JSON": ("nlohmann/",),
    "HTTP": ("boost/beast", "boost/asio"),
    "prometheus": ("prometheus/",),
    "OpenSSL": ("openssl/",),
}
# Folders that each folder may use beyond itself and the standard library; the longest folder wins.
ALLOWED = {
    "kernels": set(),
    "models": {"kernels", "LibTorch", "Abseil", "JSON"},
    "server": {"proto", "models", "Abseil", "JSON", "protobuf", "gRPC", "HTTP"},
    "server/scheduler": {"Abseil"},
    "server/limits": {"Abseil"},
    "server/log": {"Abseil", "JSON"},
    "server/metrics": {"Abseil", "prometheus"},
    "server/config": {"Abseil", "JSON"},
    "server/http": {"proto", "models", "Abseil", "JSON", "protobuf", "HTTP", "OpenSSL"},
    "server/security": {"Abseil", "OpenSSL"},
    "client": {"proto", "gRPC", "protobuf", "Abseil", "JSON"},
    "client/cli/search": {"proto", "gRPC", "protobuf", "Abseil", "OpenSSL"},
}
# The headers of models/ that the server may see.
MODEL_INTERFACE = ("models/inspect.h", "models/model.h", "models/pauses.h", "models/stop_scope.h",
                   "models/tokenizing.h")

# The header of server/ that the client may see: what .gitignore leaves out is one rule for both.
SHARED_WITH_CLIENT = ("server/folder/ignore_rules.h",)


def sources():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu", ".cuh", ".inc", ".c"):
                yield path


def room_of(include):
    """The room or library an include names; None for the standard library and codecs."""
    if re.search(r"\.pb\.h$", include):
        return "proto"
    for library, prefixes in LIBRARIES.items():
        if include.startswith(prefixes):
            return library
    first = include.split("/")[0]
    return first if first in ROOMS else None


def allowed_for(path):
    folder = path.relative_to(ROOT).parent.as_posix()
    rules = [rule for rule in ALLOWED if folder == rule or folder.startswith(rule + "/")]
    return max(rules, key=len), ALLOWED[max(rules, key=len)]


def violations(path):
    rule, allowed = allowed_for(path)
    own = rule.split("/")[0]
    for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
        target = room_of(include)
        if own == "client" and include in SHARED_WITH_CLIENT:
            continue
        if target is None or target == own or target in allowed:
            if own == "server" and target == "models" and include not in MODEL_INTERFACE:
                yield f"{path.relative_to(ROOT)} includes {include}; open are {MODEL_INTERFACE}"
            continue
        yield f"{path.relative_to(ROOT)} includes {include} ({target})"


def test_every_include_points_the_right_way():
    files = list(sources())
    assert len(files) > 50
    found = [violation for path in files for violation in violations(path)]
    assert not found, "\n".join(found)


def test_libtorch_and_protobuf_never_meet():
    for path in list(sources()) + sorted((ROOT / "tests").rglob("*.cc")):
        rooms = {room_of(include) for include in INCLUDE.findall(path.read_text(encoding="utf-8"))}
        assert not ("LibTorch" in rooms and rooms & {"protobuf", "proto", "gRPC"}), path


def test_the_scheduler_stands_alone():
    for path in (ROOT / "server/scheduler").glob("*.[hc]*"):
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if include.split("/")[0] in ROOMS:
                assert include.startswith("server/scheduler/"), f"{path}: {include}"


@pytest.mark.parametrize("suffix", [".h", ".cuh"])
def test_headers_hold_no_conditionals(suffix):
    for path in sources():
        if path.suffix == suffix:
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"^\s*#\s*(if|ifdef|ifndef|elif)\b", text, re.MULTILINE), path
