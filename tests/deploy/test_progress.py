"""What serve.sh shows while it builds: a line now and then, minutes left, and all that compilers say."""

import io
import subprocess
import sys

import pytest

from server_process import ROOT

sys.path.insert(0, str(ROOT / "deploy"))
import progress  # noqa: E402

FILES = [f"Building CXX object server/{i}.cc.o" for i in range(100)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def lines(descriptions):
    return [f"[{i}/{len(descriptions)}] {text}\n" for i, text in enumerate(descriptions, 1)]


def follow(given, out, seconds_each=6.0):
    """Feeds lines that come at equal intervals; returns what is shown."""
    now = [0.0]

    def arriving():
        for line in given:
            now[0] += seconds_each
            yield line
    progress.follow(arriving(), progress.Progress(FILES), out, clock=lambda: now[0])
    return out.getvalue()


def test_a_line_every_half_minute_and_one_at_the_end():
    shown = follow(lines(FILES), io.StringIO()).splitlines()
    assert shown[0] == "      5 %, about 10 min left (5 of 100 steps)"
    assert shown[9] == "     50 %, about 5 min left (50 of 100 steps)"
    assert shown[18] == "     95 %, about 30 s left (95 of 100 steps)"
    assert shown[-1] == "    100 steps in 600 s"
    assert len(shown) == 21


def test_a_terminal_has_one_line_that_changes():
    shown = follow(lines(FILES), Terminal())
    assert shown.count("\n") == 1
    assert shown.count("\r\033[K") == 101


@pytest.mark.parametrize("out", [io.StringIO, Terminal])
def test_what_compilers_say_is_shown(out):
    given = lines(FILES[:3])
    given[2:2] = ["FAILED: server/2.cc.o\n", "2.cc:1: error: no\n"]
    shown = follow(given, out())
    assert "FAILED: server/2.cc.o\n" in shown
    assert "2.cc:1: error: no\n" in shown


def test_small_steps_count_little():
    kinds = ["Building CXX object models/a.cc.o", "Building CXX object kernels/a.cc.o",
             "Linking CXX static library a.a", "Generating a.pb.cc"]
    weights = [progress.weight(kind) for kind in kinds]
    assert weights == sorted(weights, reverse=True) and weights[0] > 3 * weights[1] > 3 * weights[2]


def test_large_steps_count_more():
    kinds = ["Building CXX object server/a.cc.o", "Building CXX object server/CMakeFiles/a.dir/Unity/unity_0_cxx.cxx.o",
             "Building CXX object CMakeFiles/a.dir/cmake_pch.hxx.gch"]
    weights = [progress.weight(kind) for kind in kinds]
    assert weights == sorted(set(weights))


def test_it_builds_and_exits_as_ninja_does(tmp_path, tool):
    tool("ninja")
    (tmp_path / "build.ninja").write_text(
        "rule copy\n  command = cp $in $out\n  description = Generating $out\n"
        "build b: copy a\nbuild c: copy b\nbuild d: copy missing\n")
    (tmp_path / "a").write_text("text")

    def build(target):
        return subprocess.run([ROOT / "deploy/progress.py", tmp_path, target], capture_output=True, text=True)
    done = build("c")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c").read_text() == "text"
    assert "2 steps in" in done.stderr
    assert build("c").returncode == 0
    failed = build("d")
    assert failed.returncode != 0
    assert "missing" in failed.stderr
