"""The cost of a build as its log tells it: what counts, once, and in which order."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import build_cost  # noqa: E402

LOG = """# ninja log v5
0\t9000\t1\ta.o\taaa
0\t2500\t1\tgone.o\tbbb
100\t400\t1\tx.pb.cc\tccc
100\t400\t1\tx.pb.h\tccc
500\t2000\t2\ta.o\taaa
2000\t6250\t2\tlib.a\tddd
"""


def test_edges_count_once_and_as_they_ran_last(tmp_path, capsys):
    (tmp_path / ".ninja_log").write_text(LOG)
    for name in ("a.o", "x.pb.cc", "x.pb.h", "lib.a"):
        (tmp_path / name).touch()
    assert build_cost.main(tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 edges, 6 s in sum; the slowest:",
        "     4.2 s  lib.a", "     1.5 s  a.o", "     0.3 s  x.pb.cc"]


def test_no_more_than_ten_are_named(tmp_path, capsys):
    (tmp_path / ".ninja_log").write_text(
        "# ninja log v5\n" + "".join(f"0\t{i}000\t1\t{i}.o\t{i}\n" for i in range(12)))
    for i in range(12):
        (tmp_path / f"{i}.o").touch()
    build_cost.main(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("12 edges, 66 s ")
    assert [line.split()[-1] for line in lines[1:]] == [f"{i}.o" for i in range(11, 1, -1)]


def test_a_folder_without_a_log_is_no_failure(tmp_path, capsys):
    assert build_cost.main(tmp_path) == 0
    assert "no build log" in capsys.readouterr().out
