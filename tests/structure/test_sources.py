"""House rules a script can check: lengths, marks of unfinished work, machine paths."""

import json
import os
import pathlib
import re
import statistics
import subprocess

import pytest

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


# Every way to read the clock that people and NTP set; Abseil's timeouts are of it, too (steady_cond_var.h).
WALL_CLOCK = re.compile(r"absl::Now\(\)|GetCurrentTimeNanos|system_clock::now|\bSystemClock\b|gettimeofday|"
                        r"CLOCK_REALTIME|GPR_CLOCK_REALTIME|timespec_get|\b(?:std::)?time\((?:nullptr|NULL|0)\)|"
                        r"\bWithDeadline\b|\w+With(?:Deadline|Timeout)\(|wait_until|sleep_until")
# Places that read it, and how often: dates, and gRPC's deadlines, which are times of that clock.
WALL_CLOCK_USES = {
    "server/scheduler/clock.h": 2, "server/scheduler/steady_clock.h": 1,
    "server/log/log.cc": 1, "server/http/serve/http_server.cc": 1, "server/http/v1/completions.cc": 1,
    "server/http/v1/score.cc": 1, "server/api/calls/statistics.cc": 1,
    "server/http/transport/connection_writing.cc": 2,
    "server/tracing/span_exporter.cc": 1, "server/grpc/grpc_server.cc": 1,
    "server/grpc/call_context.cc": 1,
}


def wall_clock_uses(text):
    return len(WALL_CLOCK.findall(re.sub(r"//.*", "", text)))


def test_nothing_is_timed_by_the_wall_clock():
    """Deadlines and durations are on SteadyNow, which nobody sets; dates are what is left."""
    found = {path.relative_to(ROOT).as_posix(): wall_clock_uses(path.read_text(encoding="utf-8"))
             for path in tracked() if path.suffix in (".h", ".cc")
             and path.relative_to(ROOT).parts[0] in ("server", "models", "kernels")}
    assert {path: uses for path, uses in found.items() if uses} == WALL_CLOCK_USES


@pytest.mark.parametrize("line", [
    "begin_(absl::GetCurrentTimeNanos()) {", "last_ = absl::Now() + kPatience;",
    "auto now = std::chrono::system_clock::now();", "clock_gettime(CLOCK_REALTIME, &now);",
    "const time_t now = std::time(nullptr);", "changed_.wait_until(lock, deadline);",
    "changed_.WaitWithTimeout(&mutex_, kPatience);", "over.WaitForNotificationWithTimeout(left);"])
def test_a_use_of_the_wall_clock_is_seen(line):
    assert wall_clock_uses(line) == 1 and wall_clock_uses("// " + line) == 0


THREAD = re.compile(r"std::thread\s*(?:\w+\s*)?[({]")
THREAD_MEMBER = re.compile(r"std::(?:thread|vector<std::thread>) (\w+);")


def own_threads(text, members):
    """Threads that begin otherwise than by StartThread: built by name, or in place as a member."""
    text = re.sub(r"//.*", "", text)
    found = [match[0] for match in THREAD.finditer(text)]
    for member in members:
        begun = re.compile(rf"\b{member}(?:\(|\{{|\.emplace_back\(|\.push_back\(| = )\s*(?!StartThread\()[^\s;)]")
        found += [match[0] for match in begun.finditer(text)]
    return found


def test_no_thread_ends_the_process():
    """server/scheduler/thread_loop.h begins the server's threads: what they throw ends what they were at."""
    sources = {path: path.read_text(encoding="utf-8") for path in tracked()
               if path.suffix in (".h", ".cc") and path.is_relative_to(ROOT / "server")
               and path.name != "thread_loop.h"}
    members = {path: THREAD_MEMBER.findall(text) for path, text in sources.items()}
    found = {path.relative_to(ROOT).as_posix(): threads for path, text in sources.items()
             if (threads := own_threads(text, members[path] + members.get(path.with_suffix(".h"), [])))}
    assert sum(map(len, members.values())) > 10
    assert not found, found


@pytest.mark.parametrize("text", [
    "thread_([this] { Loop(); }) {}", "thread_ = std::thread([this] { Loop(); });",
    "std::thread stopper([&] { Stop(); });", "threads_.emplace_back([this] { Loop(); });"])
def test_a_thread_of_its_own_is_seen(text):
    members = ["thread_", "threads_"]
    assert own_threads(text, members)
    assert not own_threads("thread_(StartThread([this] { Loop(); })) {} "
                           "threads_.push_back(StartThread([this] { Loop(); }));", members)


# Copies of a value of options, one for each element of a list, beside those of Like (server/api/calls/copies.h).
OWN_COPIES = re.compile(r"(?:push_back|emplace_back)\((?:\w+(?:\.|->))?like\)|"
                        r"\b\w+ (?:\w+) = (?:\w+(?:\.|->))?like;|^\s*(?!Like<)[\w:]*Request like;|"
                        r"\*\w*(?:\.|->)?like\b",
                        re.MULTILINE)


def test_options_are_copied_in_one_place():
    """Each element of a list gets its options by Like::Copies, which checks what they take."""
    sources = [path for path in tracked() if path.suffix in (".h", ".cc")
               and path.is_relative_to(ROOT / "server") and path.name != "copies.h"]
    found = {path.relative_to(ROOT).as_posix(): match[0] for path in sources
             if (match := OWN_COPIES.search(re.sub(r"//.*", "", path.read_text(encoding="utf-8"))))}
    assert not found, found
    taken_apart = [path.name for path in sources if "like.operator->()" in path.read_text(encoding="utf-8")]
    assert taken_apart == ["typed.cc"]  # A parser fills it there.
    users = {path.name for path in sources if ".Copies(" in path.read_text(encoding="utf-8")}
    assert len(users) >= 9


@pytest.mark.parametrize("line", [
    "  models::Request like;", "    out.push_back(like);", "    list.items.push_back(body.like);",
    "  ClassifyRequest item = like;", "  EmbedRequest like;"])
def test_a_copy_of_options_is_seen(line):
    assert OWN_COPIES.search(line)
    assert not OWN_COPIES.search(line.replace("like", "found"))


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
