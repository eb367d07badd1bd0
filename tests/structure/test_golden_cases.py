"""Tests name only golden cases that tests/golden has, or ask first whether a case is there."""

import os
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
LEFT_OUT = GOLDEN / "larger_set.txt"
LITERAL = re.compile(r'"([^"\\\n]+)"')
# Calls that take names of cases and keep those that are there.
ASKS_FIRST = {".cc": re.compile(r"\bPresent\((?:[^()]|\([^()]*\))*\)"),
              ".h": re.compile(r"\bPresent\((?:[^()]|\([^()]*\))*\)"),
              ".py": re.compile(r"!= \"\w+\"")}


def left_out():
    return {line for line in LEFT_OUT.read_text().splitlines() if not line.startswith("#")}


def named_without_asking(text, suffix, cases):
    """The names in `text` of cases that may be missing, where nothing asks whether they are there."""
    if suffix == ".py" and "in the full set only" in text:
        return set()
    kept = {case.parent.name for case in GOLDEN.glob("*/*/case.json")}
    missing = cases | {case.split("/")[1] for case in cases} - kept
    literals = LITERAL.findall(ASKS_FIRST[suffix].sub("", text))
    return {literal for literal in literals if literal in missing}


def test_every_named_case_is_here():
    found = {}
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix in ASKS_FIRST and path != pathlib.Path(__file__).resolve():
            names = named_without_asking(path.read_text(encoding="utf-8"), path.suffix, left_out())
            if names:
                found[str(path.relative_to(ROOT))] = sorted(names)
    assert not found, f"not in tests/golden: {found}"


def test_a_missing_case_is_noticed():
    cases = {"luna/mlm_long"}
    assert named_without_asking('GoldenCase golden("mlm_long", "luna");', ".cc", cases) == {"mlm_long"}
    assert named_without_asking('Present("luna", {"mlm_long"})', ".cc", cases) == set()
    assert named_without_asking('GOLDEN / "luna/mlm_long"', ".py", cases) == cases


def test_no_case_that_is_left_out_is_here():
    assert not [case for case in left_out() if (GOLDEN / case).exists()]


@pytest.mark.skipif(not os.environ.get("LONGVIEW_GOLDEN"), reason="LONGVIEW_GOLDEN is not set")
def test_the_list_of_cases_left_out_is_whole():
    larger = pathlib.Path(os.environ["LONGVIEW_GOLDEN"])
    cases = {str(case.parent.relative_to(larger)) for case in larger.glob("*/*/case.json")}
    kept = {str(case.parent.relative_to(GOLDEN)) for case in GOLDEN.glob("*/*/case.json")}
    assert cases - kept <= left_out()
