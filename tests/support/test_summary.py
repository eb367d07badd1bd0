"""The last lines of a test run: what counts as passed, and what is listed."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import summary  # noqa: E402

FIRST = """<testsuite>
  <testcase classname="Cache" name="Holds" status="run"/>
  <testcase classname="Cache" name="Waits" status="fail">
    <failure message="Failed"/><system-out>expected 3
found 4</system-out></testcase>
  <testcase classname="Cache" name="Breaks" status="fail">
    <failure message="Failed"/><system-out>lost</system-out></testcase>
  <testcase classname="Cache" name="Needs" status="notrun"><skipped message="no device"/></testcase>
</testsuite>"""
AGAIN = """<testsuite>
  <testcase classname="Cache" name="Waits" status="run"/>
  <testcase classname="Cache" name="Breaks" status="fail"><failure message="Failed"/></testcase>
</testsuite>"""


def test_a_failure_is_counted_and_its_output_shown(tmp_path, capsys):
    first = tmp_path / "ctest.xml"
    first.write_text(FIRST)
    assert summary.main([str(first)]) == 1
    printed = capsys.readouterr().out
    assert "  expected 3\n  found 4\nFAILED Cache.Waits\n" in printed
    assert printed.endswith("\n1 passed, 2 failed, 1 skipped\n")


def test_a_test_that_passes_alone_is_listed_as_unsteady(tmp_path, capsys):
    first = tmp_path / "ctest.xml"
    first.write_text(FIRST)
    (tmp_path / "ctest.again.xml").write_text(AGAIN)
    assert summary.main([str(first)]) == 1
    printed = capsys.readouterr().out
    assert "UNSTEADY Cache.Waits\n" in printed
    assert "FAILED Cache.Breaks\n" in printed
    assert printed.endswith("\n2 passed, 1 failed, 1 skipped\n")


def test_nothing_run_is_a_failure(tmp_path, capsys):
    missing = tmp_path / "ctest.xml"
    assert summary.main([str(missing)]) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 1 failed, 0 skipped\n")
    missing.write_text("<testsuite/>")
    assert summary.main([str(missing)]) == 1
