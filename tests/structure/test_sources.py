"""House rules a script can check: lengths, marks of unfinished work, machine paths."""

import json
import os
import pathlib
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
CODE = (".h", ".cc", ".cu", ".cuh", ".inc", ".py", ".rs", ".sh", ".proto")


def tracked():
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout
    return [ROOT / name for name in listing.splitlines()]


def test_files_are_short():
    lengths = {path: path.read_text(encoding="utf-8").count("\n")
               for path in tracked() if path.suffix in (".h", ".cc", ".cu", ".cuh", ".py", ".rs")}
    assert len(lengths) > 50
    too_long = {path: n for path, n in lengths.items() if n > 600}
    assert not too_long, too_long
    assert statistics.median(lengths.values()) <= 170


def test_no_marks_of_unfinished_work():
    # Spelled in pieces so that this file does not find itself.
    marks = re.compile("|".join(["TO" + "DO", "FIX" + "ME", r"\bX" + r"XX\b", "not implem" + "ented"]))
    found = [f"{path}:{i}" for path in tracked() if path.suffix in CODE
             for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
             if marks.search(line)]
    assert not found, found


def test_nothing_is_timed_by_the_wall_clock():
    """Deadlines and durations are on SteadyNow, which nobody sets; dates are what is left."""
    dates = {"server/scheduler/clock.h", "server/scheduler/steady_clock.h", "server/log/log.cc",
             "server/http/http_server.cc", "server/http/v1/completions.cc", "server/http/v1/score.cc",
             "server/api/statistics.cc",
             "server/http/transport/connection_writing.cc", "server/tracing/span_exporter.cc"}
    found = {path.relative_to(ROOT).as_posix() for path in tracked()
             if path.suffix in (".h", ".cc") and path.is_relative_to(ROOT / "server")
             and "absl::Now()" in path.read_text(encoding="utf-8")}
    assert found <= dates, found - dates


def test_every_source_is_built():
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    built = {(pathlib.Path(entry["directory"]) / entry["file"]).resolve() for entry in commands}
    for unity in [path for path in built if path.name.startswith("unity_")]:
        built.update(pathlib.Path(unit).resolve()
                     for unit in re.findall(r'^#include "([^"]+)"', unity.read_text(), re.MULTILINE))
    missing = [str(path.relative_to(ROOT)) for path in tracked()
               if path.suffix == ".cc" and path.resolve() not in built]
    assert not missing, missing


def test_top_level_is_the_agreed_one():
    agreed = {"server", "proto", "kernels", "models", "client", "deploy", "tests",
              "CMakeLists.txt", "docker-compose.yml", "README.md", "LICENSE", "CONTRIBUTING.md",
              "CMakePresets.json"}
    names = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert not {name for name in names if not name.startswith(".")} - agreed
