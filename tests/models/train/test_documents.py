"""Strips of rendered documents: windows of them, what training makes of those, and labels by what fills them. No
browser is needed."""

import pathlib
import random

import numpy as np
import pytest

from trainer_modules import modules_of

TRAINER = "documents"

TRAINERS = pathlib.Path(__file__).resolve().parents[3] / "models/train"
PARTS = [["title", 100, 20, 500, 60], ["paragraph", 100, 100, 900, 400], ["heading", 100, 500, 300, 530],
         ["code", 100, 560, 900, 1500], ["list", 100, 1508, 600, 1700]]


@pytest.fixture
def windows(modules):
    return modules("windows")


@pytest.fixture
def strip(windows, tmp_path):
    """A stored strip whose parts are dark, each in its own gray."""
    Image = pytest.importorskip("PIL.Image")
    pixels = np.full((1800, 1024, 3), 255, np.uint8)
    for i, (_, x0, y0, x1, y1) in enumerate(PARTS):
        pixels[y0:y1, x0:x1] = 20 + 30 * i
    windows.write(tmp_path, 7, Image.fromarray(pixels), PARTS, package="some-doc")
    (stored,) = windows.strips(tmp_path)
    return stored


def test_unfinished_strips_are_not_listed(windows, strip, tmp_path):
    (tmp_path / "00008.jpg").write_bytes(b"")
    (tmp_path / "00008.partial").write_text("{")
    assert [path.name for path, _ in windows.strips(tmp_path)] == ["00007.jpg"]


def test_windows_hold_whole_lines_and_what_is_visible_of_blocks(windows):
    found = windows.cut(PARTS, 0, 40, 1024, 600)
    # Half of the title is seen: neither one nor none.
    assert found == [("paragraph", (100, 60, 900, 360)), ("heading", (100, 460, 300, 490)),
                     ("code", (100, 520, 900, 560))]
    assert windows.cut(PARTS, 0, 30, 1024, 600)[0] == ("title", (100, 0, 500, 30))
    # Slivers are no parts.
    assert windows.cut(PARTS, 0, 1495, 1024, 1800) == [("list", (100, 13, 600, 205))]
    assert windows.cut(PARTS, 300, 0, 800, 90) == []


def test_boxes_of_a_window_are_where_its_ink_is(windows, strip):
    for top in (0, 200, 900, 1500):
        pixels, found = windows.window(strip, top, (1024, 512))
        assert pixels.shape == (512, 1024, 3)
        ink = pixels.min(-1) < 230
        for _, (x0, y0, x1, y1) in found:
            assert ink[y0 + 2:y1 - 2, x0 + 2:x1 - 2].all()
            ink[max(0, y0 - 4):y1 + 4, max(0, x0 - 4):x1 + 4] = False
        assert ink.sum(1).astype(bool).sum() <= 16  # Slivers at the edges.


@pytest.mark.parametrize("size", ((1024, 512), (1024, 1280), (1280, 1024)))
def test_samples_of_a_strip_keep_boxes_on_ink(strip, size, monkeypatch):
    with modules_of(TRAINERS / "page_layout") as importing:
        samples = importing("samples")
        monkeypatch.setattr(samples, "DRAWN", 0)
        monkeypatch.setattr(samples, "worn", lambda image, found, rng: (image, found))
        made = samples.Samples(strip[0].parent)
        for seed in range(6):
            pixels, labels, boxes = made.sample(seed, size)
            assert pixels.shape == (size[1], size[0], 3) and len(labels) == len(boxes)
            for box in boxes:
                x0, y0, x1, y1 = (round(v) for v in box)
                assert 0 <= x0 < x1 <= size[0] and 0 <= y0 < y1 <= size[1]
                assert (pixels[y0 + 3:y1 - 3, x0 + 3:x1 - 3] < 230).all()


def test_what_fills_a_window_names_it(strip):
    with modules_of(TRAINERS / "page_type") as importing:
        documents = importing("documents")
        size = (1000, 1000)
        assert documents.label_of([("paragraph", (0, 0, 900, 300)), ("list", (0, 400, 900, 700))], size) == "text"
        assert documents.label_of([("paragraph", (0, 0, 900, 100)), ("table", (0, 200, 900, 700))], size) == "table"
        assert documents.label_of([("paragraph", (0, 0, 900, 300)), ("table", (0, 400, 900, 700))], size) is None
        assert documents.label_of([("table", (0, 0, 300, 300))], size) is None  # Most of it is paper.
        assert documents.label_of([("figure", (0, 0, 900, 900))], size) is None
        assert documents.label_of([], size) is None
        rng = random.Random(1)
        for label in ("code", "text"):
            found = documents.picture([strip], label, rng, wear=False)
            assert found is not None and found.width >= 600
        assert documents.picture([strip], "table", rng) is None


def test_packages_of_training_and_of_tests_are_apart(modules):
    collect = modules("collect")
    train, held_out = (collect.packages(split) for split in collect.SPLITS)
    assert len(train) > 50 and len(held_out) > 10
    assert len(set(train)) == len(train) and not set(train) & set(held_out)


def test_pages_that_list_names_are_passed_over(modules, tmp_path):
    collect = modules("collect")
    for name, size in (("a.html", 5000), ("b.htm", 5000), ("genindex.html", 5000), ("tiny.html", 10),
                       ("long.html", 900_000), ("c.txt", 5000)):
        (tmp_path / name).write_text("x" * size)
    assert [path.name for path in collect.pages(tmp_path)] == ["a.html", "b.htm"]


def test_strips_of_a_capture_are_scaled_and_cut(modules):
    pytest.importorskip("selenium")
    Image = pytest.importorskip("PIL.Image")
    render = modules("render")
    parts = [["heading", 10, 10, 400, 40], ["paragraph", 10, 50, 500, 900], ["code", 10, 1000, 500, 1200],
             ["code", 10, 1400, 500, 1900]]
    (whole, found), = render.cut_strips(Image.new("RGB", (1024, 4000)), 2.0, parts)
    # The lower strip has one kind of part alone, too little to learn from.
    assert whole.height == render.STRIP
    assert found == [["heading", 20, 20, 800, 80], ["paragraph", 20, 100, 1000, 1800],
                     ["code", 20, 2000, 1000, 2400]]
