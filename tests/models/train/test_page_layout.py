"""Pages with boxes drawn for training, what the detector pays for them, and the way from training to the
server's boxes."""

import contextlib
import io
import json
import pathlib
import urllib.request

import numpy as np
import pytest

from server_process import ZOO, Server

TRAINER = "page_layout"
PAGES = pathlib.Path(__file__).resolve().parents[2] / "golden/page_layout"


@pytest.fixture(scope="module")
def layouts(modules):
    found = modules("layouts")
    try:
        found.draw(0)
        found.draw(0, held_out=True)
    except (SystemExit, FileNotFoundError) as error:
        pytest.skip(f"fonts: {error}")
    return found


def test_pages_follow_their_seed_and_every_label_occurs(layouts):
    labels = set()
    for seed in range(12):
        image, found = layouts.draw(seed, held_out=seed % 2 == 1)
        labels |= {label for label, _ in found}
        assert image.size == layouts.SIZE
        for _, (x0, y0, x1, y1) in found:
            assert 0 <= x0 < x1 <= image.width and 0 <= y0 < y1 <= image.height
    assert labels == set(layouts.LABELS)
    image, found = layouts.draw(3)
    again, boxes = layouts.draw(3)
    assert found == boxes and np.array_equal(np.asarray(image), np.asarray(again))


def test_blocks_of_a_column_do_not_overlap(layouts):
    for seed in range(6):
        boxes = [box for _, box in layouts.draw(seed)[1]]
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                wide = min(a[2], b[2]) - max(a[0], b[0])
                high = min(a[3], b[3]) - max(a[1], b[1])
                # Boxes around lines that are askew reach into each other.
                assert wide <= 24 or high <= 24, (seed, a, b)


def test_boxes_turn_with_the_page(modules):
    Image, ImageDraw = (pytest.importorskip(f"PIL.{name}") for name in ("Image", "ImageDraw"))
    scan, size = modules("scan"), (300, 400)
    for box, degrees in (((20, 30, 280, 45), 3.0), ((200, 300, 260, 390), -5.0), ((0, 0, 90, 8), 1.0)):
        image = Image.new("L", size, 255)
        ImageDraw.Draw(image).rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=0)
        ink = Image.eval(scan.skewed(image, degrees, 255), lambda v: 255 * (v < 128)).getbbox()
        assert np.abs(np.array(ink) - scan.turned(box, degrees, size)).max() <= 1.5


BOXES = [[20.0, 30.0, 200.0, 60.0], [40.0, 100.0, 300.0, 250.0]]


def test_boxes_come_back_from_their_codes(modules):
    torch = pytest.importorskip("torch")
    detector, losses = modules("detector"), modules("losses")
    places, boxes = detector.anchors(256, 320), torch.tensor(BOXES)
    of = losses.overlaps(places, boxes).max(1).values > 0.3
    for box in boxes:
        wanted = box.expand(int(of.sum()), 4)
        codes = detector.encode(wanted, places[of])
        assert (detector.decode(codes, places[of]) - wanted).abs().max() < 1e-2


def test_anchors_answer_for_boxes_that_they_predict_well(modules):
    torch = pytest.importorskip("torch")
    detector, losses = modules("detector"), modules("losses")
    places, boxes, labels = detector.anchors(256, 320), torch.tensor(BOXES), torch.tensor([2, 0])
    scores = torch.full((len(places), 3), 0.1)
    fits, at = losses.overlaps(places, boxes).topk(20, 0)
    overlap = fits.clone()
    # The anchor that fits the first box fifth best predicts it exactly.
    expert = int(at[4, 0])
    overlap[4, 0], scores[expert, 2] = 1.0, 0.9
    anchors, of, wanted = losses.assign(fits, at, labels, scores, overlap)
    assert len(anchors) == len(set(anchors.tolist())) and set(of.tolist()) == {0, 1}
    assert max(of.bincount().tolist()) <= losses.KEPT
    assert wanted.max() <= 1 and float(wanted[anchors == expert]) == pytest.approx(1, abs=1e-5)
    assert float(wanted[(of == 0) & (anchors != expert)].max()) < 0.9
    nothing = losses.loss(places, torch.full((len(places), 3), -8.0), torch.zeros(len(places), 4), labels[:0],
                          boxes[:0])
    assert float(nothing) < 0.01


def test_the_loss_is_least_for_what_is_right(modules):
    torch = pytest.importorskip("torch")
    detector, losses = modules("detector"), modules("losses")
    places, boxes, labels = detector.anchors(256, 320), torch.tensor(BOXES), torch.tensor([2, 0])
    fits, of = losses.overlaps(places, boxes).max(1)
    near = fits > 0.3

    def paid(label_shift, box_shift):
        logits = torch.full((len(places), 3), -6.0)
        deltas = torch.zeros(len(places), 4)
        logits[near, (labels[of[near]] + label_shift) % 3] = 6.0
        deltas[near] = detector.encode(boxes[of[near]] + box_shift, places[near])
        return float(losses.loss(places, logits, deltas, labels, boxes))

    right = paid(0, 0)
    assert right < paid(0, 8) < paid(0, 40) and right < paid(1, 0)


def test_a_grown_detector_keeps_what_the_served_one_says(modules):
    torch = pytest.importorskip("torch")
    detector = modules("detector")
    torch.manual_seed(3)
    old, new = detector.Detector((256, 256), 2), detector.Detector((256, 256), 3)
    served = {name: value for name, value in old.state_dict().items() if not name.startswith("cover.")}
    assert new.go_on_from(served, ["a", "c"], ["a", "b", "c"]) == len(served)
    picture = torch.randn(1, 3, 256, 256)
    with torch.no_grad():
        (was, boxes, _), (now, same, _) = old(picture), new(picture)
    assert torch.allclose(boxes, same) and torch.allclose(was, now[..., [0, 2]], atol=1e-5)


def test_every_box_of_a_page_has_an_anchor_that_is_close(layouts, modules):
    torch = pytest.importorskip("torch")
    detector, losses = modules("detector"), modules("losses")
    places = detector.anchors(layouts.SIZE[1], layouts.SIZE[0])
    boxes = torch.tensor([box for seed in range(4) for _, box in layouts.draw(seed)[1]]).float()
    best = losses.overlaps(places, boxes).max(0).values
    assert (best > 0.4).float().mean() > 0.9


def test_an_export_of_fewer_labels_says_the_same_of_those(modules):
    torch = pytest.importorskip("torch")
    layouts, detector, export = modules("layouts"), modules("detector"), modules("export")
    labels = ["table", "code", "title"]
    whole = detector.Detector((256, 256), len(layouts.LABELS))
    part = detector.Detector((256, 256), len(labels))
    tensors = {name: value for name, value in whole.state_dict().items() if not name.startswith("cover.")}
    part.load_state_dict(export.chosen(tensors, labels), strict=False)
    picture = torch.randn(1, 3, 256, 256)
    with torch.no_grad():
        was, now = whole(picture)[0], part(picture)[0]
    assert torch.allclose(now, was[..., [layouts.LABELS.index(label) for label in labels]], atol=1e-5)
    assert list(export.config(labels)["id2label"].values()) == labels


def test_reported_precision_is_what_coco_sums_up(layouts, modules, tmp_path, monkeypatch):
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    evaluate = modules("evaluate")
    evaluate.store(tmp_path, evaluate.drawn(evaluate.HELD_OUT[1], 3, True))
    truth = json.loads((tmp_path / "truth.json").read_text())
    random = np.random.default_rng(5)

    def answer(_, picture, kind):
        """Most of the page's boxes, not quite where they are, and some that are not there."""
        number = next(one["id"] for one in truth["images"]
                      if (tmp_path / one["file_name"]).read_bytes() == picture)
        found = []
        for one in truth["annotations"]:
            if one["image_id"] == number and random.random() < 0.8:
                x0, y0, wide, high = np.array(one["bbox"]) * random.normal(1, 0.02, 4)
                label = layouts.LABELS[one["category_id"] if random.random() < 0.9 else 0]
                found.append({"x0": x0, "y0": y0, "x1": x0 + wide, "y1": y0 + high, "label": label,
                              "score": random.random()})
        return found

    monkeypatch.setattr(evaluate, "detect", answer)
    same, results = evaluate.stored(None, tmp_path)
    assert same == truth
    whole, half = evaluate.average_precision(truth, results)
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO(str(tmp_path / "truth.json"))
        run = evaluation.COCOeval(data, data.loadRes(results), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    assert 0.1 < run.stats[0] < 0.95
    assert np.nanmean(whole) == pytest.approx(run.stats[0], abs=1e-6)
    assert np.nanmean(half) == pytest.approx(run.stats[1], abs=1e-6)
    assert f"AP {run.stats[0]:.3f}" in evaluate.table("pages", truth, results)


def test_from_training_to_the_servers_boxes(layouts, modules, program, tmp_path):
    torch = pytest.importorskip("torch")
    train, export, detector, samples = (modules(name) for name in ("train", "export", "detector", "samples"))
    drawn = samples.Samples(None)
    run = train.Run(tmp_path / "page-layout.pt", "cpu", 1)
    first = run.learn([drawn.sample(1, train.PART)], 1e-4)
    run.save()
    run = train.Run(tmp_path / "page-layout.pt", "cpu", 1)  # Goes on.
    assert run.step == 1 and np.isfinite(first)
    assert np.isfinite(run.learn([drawn.sample(2, layouts.SIZE)], 1e-4))
    run.save()
    out = tmp_path / "page-layout"
    export.main(["--work", str(tmp_path), "--out", str(out)])
    program("longview-server")
    image, _ = layouts.draw(5)
    picture = io.BytesIO()
    image.save(picture, "PNG")
    saved = torch.load(run.path, weights_only=True)["average"]
    run.model.load_state_dict({name: value.half().float() for name, value in saved.items()})
    with torch.no_grad():
        logits, deltas, _ = run.model(train.normalised([np.asarray(image)]))
    scores, places = torch.sigmoid(logits[0]), detector.anchors(image.height, image.width)
    with Server([f"m={out}"], "--dtype=fp32") as server:
        request = urllib.request.Request(
            f"http://{server.http}/v1/detect?model=m&score_threshold=0&max_detections=1",
            picture.getvalue(), {"Content-Type": "image/png"})
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)["detections"][0]
    place, label = divmod(int(scores.argmax()), len(layouts.LABELS))
    box = detector.decode(deltas[0, place:place + 1], places[place:place + 1])[0]
    box[0::2] = box[0::2].clamp(0, image.width)
    box[1::2] = box[1::2].clamp(0, image.height)
    assert found["label"] == layouts.LABELS[label]
    assert abs(found["score"] - float(scores.max())) < 1e-4
    assert np.abs([found[k] - float(v) for k, v in zip(("x0", "y0", "x1", "y1"), box)]).max() < 0.1


def test_the_bundled_model_finds_parts_of_pages_it_never_saw(modules, program):
    pytest.importorskip("pycocotools")
    evaluate = modules("evaluate")
    program("longview-server")
    with Server([ZOO / "page-layout"], "--dtype=fp32") as server:
        truth, results = evaluate.stored(server.http, PAGES)
    assert len(truth["annotations"]) > 20 and results
    whole, half = evaluate.average_precision(truth, results)
    assert np.nanmean(half) > 0.35 and np.nanmean(whole) > 0.12
    # Boxes in the wrong places would count for little.
    moved = [{**one, "bbox": [one["bbox"][0] + 60, one["bbox"][1] + 60, *one["bbox"][2:]]} for one in results]
    assert np.nanmean(evaluate.average_precision(truth, moved)[1]) < np.nanmean(half) / 2
