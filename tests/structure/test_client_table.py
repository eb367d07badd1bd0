"""The table of stock clients in client/README.md names those that tests use, in the versions that are pinned."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r'pytest\.mark\.client\("(.+?)", "(.+?)"(, VERSION)?\)')
# Programs of the system, in whatever version it has.
UNPINNED = {"curl"}


def pinned(name):
    """The version that the environment of the clients, or install_clients.sh, has of it."""
    constraints = (ROOT / "tests/constraints.txt").read_text()
    programs = (ROOT / "tests/support/install_clients.sh").read_text()
    variable = name.upper().replace("-", "_")
    found = re.search(rf"^{name}==(\S+)", constraints, re.MULTILINE) or \
        re.search(rf"^{variable}=v(\S+)", programs, re.MULTILINE)
    return found[1]


def marks():
    """{(name, version, calls)} of the tests; no version where none is pinned."""
    for folder in ("e2e", "suites"):
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            text = path.read_text()
            for name, calls, own in MARK.findall(text):
                version = re.search(r'^VERSION = "(.+)"', text, re.MULTILINE)[1] if own else None
                yield name, None if name in UNPINNED else version or pinned(name), calls


def test_the_table_is_that_of_the_tests():
    wanted = set(marks())
    assert len(wanted) > 15
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \| (.+?) \| pass \|$",
                      (ROOT / "client/README.md").read_text(), re.MULTILINE)
    assert {(name, None if name in UNPINNED else version, calls) for name, version, calls in rows} == wanted
