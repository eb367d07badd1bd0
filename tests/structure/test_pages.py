"""The pages that lead through the code name files, functions and line counts that are there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["models/ADDING.md", "server/REQUESTS.md"]
STEP = re.compile(r"^\| `(\w+)` \| `([\w./]+)` \|", re.MULTILINE)
COUNT = re.compile(r"^\| `([\w./]+)` \| (\d+) \|", re.MULTILINE)
PATH = re.compile(r"`(\w+/[\w./]+)`")
NAME = re.compile(r"`([A-Z][a-z]\w+)`")


def faults(text, root):
    """Sentences about what the page says and `root` does not have."""
    for path in PATH.findall(text):
        if not (root / path).exists():
            yield f"{path} does not exist"
    for name, path in STEP.findall(text):
        if (root / path).exists() and not re.search(rf"\b{name}\(", (root / path).read_text()):
            yield f"{path} has no function {name}"
    for path, said in COUNT.findall(text):
        # A few lines more or less do not make the page wrong.
        if (root / path).exists():
            lines = len((root / path).read_text().splitlines())
            if abs(lines - int(said)) > 0.1 * lines + 2:
                yield f"{path} has {lines} lines, the page says {said}"


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(STEP.findall(text)) + len(COUNT.findall(text)) > 10
    assert not list(faults(text, ROOT))


@pytest.mark.parametrize("page", PAGES)
def test_types_and_functions_in_the_text_exist(page):
    sources = "\n".join(path.read_text(encoding="utf-8") for room in ("models", "server", "kernels")
                        for ending in ("*.h", "*.cc") for path in (ROOT / room).rglob(ending))
    names = set(NAME.findall((ROOT / page).read_text(encoding="utf-8")))
    assert not {name for name in names if not re.search(rf"\b{name}\b", sources)}


def test_a_wrong_page_is_noticed(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room/file.cc").write_text("void There() {}\n" * 20)
    page = ("| `There` | `room/file.cc` | yes |\n| `Gone` | `room/file.cc` | no |\n"
            "| `room/file.cc` | 40 | no |\n| `There` | `room/none.cc` | no |\n")
    assert list(faults(page, tmp_path)) == [
        "room/none.cc does not exist", "room/file.cc has no function Gone",
        "room/file.cc has 20 lines, the page says 40"]
