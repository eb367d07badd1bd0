"""pycocotools scores what the server answers as it scores the reference's own detections: boxes and
masks travel in the form that COCO's tools read, and nothing is lost on the way."""

import contextlib
import io
import json

import numpy as np
import pytest
from goldens import tensors
from server_process import Server
from test_detection import CASES, detect, pictures

mask_tools = pytest.importorskip("pycocotools.mask")
coco = pytest.importorskip("pycocotools.coco")
evaluation = pytest.importorskip("pycocotools.cocoeval")

CASE = "maskrcnn_small"


def encoded(mask):
    rle = mask_tools.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": rle["size"], "counts": rle["counts"].decode()}


def entry(image, label, box, rle, **more):
    x0, y0, x1, y1 = (float(v) for v in box)
    return {"image_id": image, "category_id": int(label) + 1, "bbox": [x0, y0, x1 - x0, y1 - y0],
            "segmentation": rle, "area": (x1 - x0) * (y1 - y0), "iscrowd": 0, **more}


def average_precision(truth, results, kind):
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO()
        data.dataset = truth
        data.createIndex()
        run = evaluation.COCOeval(data, data.loadRes(results), kind)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run.stats


def test_average_precision_is_the_references():
    want = tensors(CASES / CASE / "expected.safetensors")
    random = np.random.default_rng(3)
    annotations, reference, ours, images = [], [], [], []
    with Server([f"m={CASES / CASE / 'model'}"], "--dtype=fp32") as server:
        for i, path in enumerate(pictures(CASE)):
            masks = want[f"masks.{i}"]
            images.append({"id": i + 1, "height": masks.shape[1], "width": masks.shape[2]})
            for box, label, mask, score in zip(want[f"boxes.{i}"], want[f"classes.{i}"], masks,
                                               want[f"scores.{i}"]):
                reference.append(entry(i + 1, label, box, encoded(mask), score=float(score)))
                # The truth: some of the objects, a little elsewhere.
                if random.random() < 0.6:
                    moved = box + random.normal(0, 0.4, 4)
                    shifted = np.roll(mask, random.integers(-2, 3), 1)
                    annotations.append(entry(i + 1, label, moved, encoded(shifted),
                                             id=len(annotations) + 1))
            answer = detect(server, "m", path.read_bytes(), "&masks=true")[1]
            ours += [entry(i + 1, d["label_id"], [d[k] for k in ("x0", "y0", "x1", "y1")],
                           json.loads(d["mask_rle"]), score=d["score"])
                     for d in answer["detections"]]
    labels = sorted({a["category_id"] for a in reference})
    truth = {"images": images, "annotations": annotations, "info": {},
             "categories": [{"id": n, "name": str(n)} for n in labels]}
    for kind in ("bbox", "segm"):
        theirs, found = (average_precision(truth, results, kind) for results in (reference, ours))
        assert 0.1 < theirs[0] < 0.98, "the truth must be neither trivial nor unrelated"
        assert np.abs(theirs - found).max() <= 2e-3, kind
