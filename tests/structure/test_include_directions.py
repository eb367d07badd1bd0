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
MODEL_INTERFACE = ("models/inspect.h", "models/model.h", "models/pauses.h", "models/quantize/quantize.h",
                   "models/stop_scope.h", "models/tokenizing.h")

# The header that every folder of models/ and server/ may see: how a status is passed on.
SHARED_WITH_SERVER = ("models/status_macros.h",)

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
        if own == "client" and include in SHARED_WITH_CLIENT or own == "server" and include in SHARED_WITH_SERVER:
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


def folder_includes(files):
    """Which folders include which, each pair with the lines that say so."""
    names = set(files)
    graph = {}
    for name, text in sorted(files.items()):
        own = name.rpartition("/")[0]
        for include in INCLUDE.findall(text):
            other = include.rpartition("/")[0]
            if include in names and other != own:
                graph.setdefault(own, {}).setdefault(other, []).append(f"{name} includes {include}")
    return graph


def shortest_circle(graph, start):
    """The folders of a shortest way from a folder back to itself; None: there is none."""
    ways = [[start]]
    seen = set()
    while ways:
        way = ways.pop(0)
        for other in sorted(graph.get(way[-1], {})):
            if other == start:
                return way + [start]
            if other not in seen:
                seen.add(other)
                ways.append(way + [other])
    return None


def circle_lines(files):
    """The include lines of one of the shortest circles of folders, those of a pair cut to two."""
    graph = folder_includes(files)
    circles = [circle for circle in (shortest_circle(graph, folder) for folder in sorted(graph)) if circle]
    if not circles:
        return []
    circle = min(circles, key=len)
    return [line for pair in zip(circle, circle[1:]) for line in graph[pair[0]][pair[1]][:2]]


def named_sources():
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sources()}


def test_no_folders_include_each_other_in_a_circle():
    files = named_sources()
    assert len(folder_includes(files)) > 40
    found = circle_lines(files)
    assert not found, "\n".join(found)


def test_a_circle_of_folders_is_seen():
    files = {"models/ops/backend.h": '#include "models/dense/compute.h"\n',
             "models/dense/compute.h": "#pragma once\n",
             "models/dense/linear.cc": '#include "models/dense/compute.h"\n#include "models/layers/panels.h"\n',
             "models/layers/panels.h": "#pragma once\n"}
    assert not circle_lines(files)
    files["models/layers/panels.h"] = '#include "models/ops/backend.h"\n'
    assert circle_lines(files) == ["models/dense/linear.cc includes models/layers/panels.h",
                                   "models/layers/panels.h includes models/ops/backend.h",
                                   "models/ops/backend.h includes models/dense/compute.h"]


@pytest.mark.parametrize("suffix", [".h", ".cuh"])
def test_headers_hold_no_conditionals(suffix):
    for path in sources():
        if path.suffix == suffix:
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"^\s*#\s*(if|ifdef|ifndef|elif)\b", text, re.MULTILINE), path
