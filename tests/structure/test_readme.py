"""README.md is one that a stranger reads: short, its links lead somewhere, its picture shows what was measured."""

import importlib.util
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
LONGEST, WIDEST, FIRST_SCREEN = 150, 120, 25


def pages():
    listing = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout
    return [ROOT / name for name in listing.split("\0") if name]


def anchors(page):
    """Names of a page's headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def dead_links(page):
    text = re.sub(r"`[^`]*`", "", re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"),
                                         flags=re.MULTILINE | re.DOTALL))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in anchors(target):
            yield link


def chart():
    spec = importlib.util.spec_from_file_location("peers_chart", ROOT / "tests/bench/peers_chart.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_is_short():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST
    assert not [line for line in lines if len(line) > WIDEST]


def test_the_first_screen_has_the_picture_and_a_request():
    text = "\n".join(README.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN])
    assert "(tests/bench/peers.svg)" in text and "curl " in text and "longview_server-*.whl" in text


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert not list(dead_links(page))


def test_a_dead_link_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One head\n[a](#one-head) [b](#none) [c](gone.md) [d](https://example.org) `[e](code)`\n")
    assert list(dead_links(page)) == ["#none", "gone.md"]


def test_the_picture_is_that_of_its_figures():
    drawn = chart()
    found = drawn.results()
    assert len(found) >= 2
    assert (ROOT / "tests/bench/peers.svg").read_text() == drawn.svg(found)
    text = README.read_text(encoding="utf-8")
    assert drawn.with_caption(text, found) == text


def test_each_figure_has_a_command_in_the_readme_of_benchmarks():
    text = (ROOT / "tests/bench/README.md").read_text()
    for entry in chart().results():
        assert re.search(rf"document_peers\.py --model {entry['model']} --lengths [\d,]*\b{entry['tokens']}\b", text)


def test_the_faster_type_of_each_program_counts():
    rows = chart().best({"hf:fp32": {"median_s": 3}, "hf:bf16": {"median_s": 2}, "hf-compiled:bf16": {"median_s": 1.5},
                         "longview:fp32": {"median_s": 1}, "openvino:bf16": {"median_s": 1.2}})
    assert rows == [("longview", "fp32", 1), ("openvino", "bf16", 1.2), ("hf-compiled", "bf16", 1.5)]
