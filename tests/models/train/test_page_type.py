"""Pages drawn for training: the same for the same seed, in styles apart; and the way from training to
the server's answers, in a few steps."""

import random

import numpy as np
import pytest

TRAINER = "page_type"


@pytest.fixture(scope="module")
def kinds(modules):
    found = modules("kinds")
    try:
        for held_out in (False, True):
            for kind in ("serif", "sans", "mono"):
                found.styles.families(kind, held_out)
    except (SystemExit, FileNotFoundError) as error:
        pytest.skip(f"fonts: {error}")
    return found


def test_styles_share_no_font(kinds):
    for kind in ("serif", "sans", "mono"):
        seen, held_out = (kinds.styles.families(kind, half) for half in (False, True))
        assert not set(seen) & set(held_out)


def test_halves_of_the_texts_are_apart(kinds):
    lines = [{"\n".join(file) for file in kinds.pages.words.sources(half)} for half in (False, True)]
    assert lines[0] and lines[1] and not lines[0] & lines[1]


def test_pictures_follow_label_seed_and_style(kinds):
    for label in kinds.LABELS:
        first = np.asarray(kinds.draw(label, 5))
        assert np.array_equal(first, np.asarray(kinds.draw(label, 5)))
        assert min(first.shape[:2]) > 200 and first.std() > 3
        for other in (kinds.draw(label, 6), kinds.draw(label, 5, held_out=True)):
            other = np.asarray(other)
            assert first.shape != other.shape or not np.array_equal(first, other)


def test_boxes_of_blocks_hold_their_ink(kinds):
    rng = random.Random(3)
    page = kinds.pages.Page((800, 1800), rng, kinds.styles.draw(rng, 800))
    y = 40
    for block in (kinds.blocks.title, kinds.blocks.heading, kinds.blocks.paragraph,
                  kinds.blocks.bullets, kinds.blocks.caption):
        y = block(page, 60, y, 600, 1760)
    assert [label for label, _ in page.found] == ["title", "heading", "paragraph", "list", "caption"]
    ink = np.abs(np.asarray(page.image, dtype=int) - page.style.paper).sum(-1) > 60
    for _, (x0, y0, x1, y1) in page.found:
        assert ink[y0:y1, x0:x1].any()
        ink[max(0, y0 - 10):y1 + 10, max(0, x0 - 10):x1 + 10] = False
    assert not ink.any()


def test_from_training_to_the_servers_answers(kinds, modules, checked, served_logits, tmp_path):
    torch = pytest.importorskip("torch")
    data, train, export = (modules(name) for name in ("data", "train", "export"))
    data.main(["--work", str(tmp_path), "--train", "14", "--test", "7"])
    train.main(["--work", str(tmp_path), "--minutes", "0.001"])
    train.main(["--work", str(tmp_path), "--minutes", "0.05"])  # Goes on.
    out = tmp_path / "page-type"
    export.main(["--work", str(tmp_path), "--out", str(out)])
    assert "image-classification" in checked(out)
    saved = torch.load(tmp_path / "page-type.pt", weights_only=True)
    assert saved["step"] > 0
    model = train.vil.Vil(saved["arch"], data.SIDE, len(kinds.LABELS))
    model.load_state_dict({name: value.half().float() for name, value in saved["average"].items()})
    pixels, _ = data.read(tmp_path, "styles")
    values = train.normalised(train.pixels_of(pixels))
    with torch.no_grad():
        want = model(values).numpy()
    (tmp_path / "pixels").write_bytes(values.numpy().tobytes())
    got = served_logits(out, {"pixels": str(tmp_path / "pixels"), "shape": list(values.shape)})
    assert np.abs(np.array(got) - want).max() < 1e-4
