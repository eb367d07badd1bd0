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


PROGRAMS = """<testsuite>
  <testcase classname="cache_test" name="cache_test" status="{}">
    <system-out>leaked 8 bytes</system-out></testcase>
</testsuite>"""
SINGLE = """<testsuites><testsuite name="Cache">
  <testcase classname="Cache" name="Holds" status="run" result="completed"/>
  <testcase classname="Cache" name="DISABLED_Grows" status="notrun" result="suppressed"/>
  <testcase classname="Cache" name="Waits" status="run" result="completed">{}</testcase>
</testsuite></testsuites>"""
FAILURE = '<failure message="expected 3" type="">expected 3</failure>'


def write_program(path, status, failure=None):
    """Leaves what ctest and, unless it crashed, the program leave."""
    path.write_text(PROGRAMS.format(status))
    if failure is not None:
        path.with_suffix("").mkdir()
        (path.with_suffix("") / "cache_test.xml").write_text(SINGLE.format(failure))


def test_the_tests_of_a_program_count_in_its_place(tmp_path, capsys):
    first = tmp_path / "ctest.xml"
    write_program(first, "run", "")
    assert summary.main([str(first)]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed, 1 skipped\n"


def test_a_failed_test_of_a_program_is_named_and_may_be_steadied(tmp_path, capsys):
    first = tmp_path / "ctest.xml"
    write_program(first, "fail", FAILURE)
    assert summary.main([str(first)]) == 1
    assert capsys.readouterr().out == ("  expected 3\nFAILED cache_test Cache.Waits\n"
                                       "1 passed, 1 failed, 1 skipped\n")
    write_program(tmp_path / "ctest.again.xml", "run", "")
    assert summary.main([str(first)]) == 0
    assert "UNSTEADY cache_test Cache.Waits\n2 passed, 0 failed" in capsys.readouterr().out


def test_a_program_that_fails_at_its_end_or_crashes_is_a_failure(tmp_path, capsys):
    first = tmp_path / "ctest.xml"
    write_program(first, "fail", "")
    assert summary.main([str(first)]) == 1
    assert capsys.readouterr().out.endswith(
        "  leaked 8 bytes\nFAILED cache_test.cache_test\n2 passed, 1 failed, 1 skipped\n")
    crashed = tmp_path / "crashed.xml"
    write_program(crashed, "fail")
    assert summary.main([str(crashed)]) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 1 failed, 0 skipped\n")


def test_nothing_run_is_a_failure(tmp_path, capsys):
    missing = tmp_path / "ctest.xml"
    assert summary.main([str(missing)]) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 1 failed, 0 skipped\n")
    missing.write_text("<testsuite/>")
    assert summary.main([str(missing)]) == 1
