"""The README's table of stock clients names those that tests use, in the versions that are pinned."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pinned(name):
    constraints = (ROOT / "tests/constraints.txt").read_text()
    programs = (ROOT / "tests/support/install_clients.sh").read_text()
    found = re.search(rf"^{name}==(\S+)", constraints, re.MULTILINE) or \
        re.search(rf"^{name.upper()}=v(\S+)", programs, re.MULTILINE)
    return found[1]


def test_the_table_is_that_of_the_tests():
    marks = {mark for path in (ROOT / "tests/e2e").glob("test_*.py")
             for mark in re.findall(r'pytest\.mark\.client\("(.+?)", "(.+?)"\)', path.read_text())}
    assert len(marks) > 10
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \| (.+?) \| (\d+) of \4 \|$",
                      (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {row[:3] for row in rows} == {(name, pinned(name), calls) for name, calls in marks}
