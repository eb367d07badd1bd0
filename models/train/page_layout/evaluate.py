"""Mean average precision of the served detector on pages that training never saw.

    python evaluate.py --server 127.0.0.1:8000 [--count 200]

Prints COCO's AP (IoU 0.50 to 0.95) and AP50 by label, for pages drawn like training and for held-out
styles; pages are sent as PNG at full size.
"""

import argparse
import contextlib
import io
import json
import urllib.request

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import layouts

MODEL = "page-layout"
SPLITS = (("drawn like training, other seeds", 10 ** 8, False), ("held-out styles", 2 * 10 ** 8, True))


def detect(server, image):
    packed = io.BytesIO()
    image.save(packed, "PNG")
    request = urllib.request.Request(
        f"http://{server}/v1/detect?model={MODEL}&score_threshold=0.05&max_detections=200",
        packed.getvalue(), {"Content-Type": "image/png"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["detections"]


def corner_and_size(x0, y0, x1, y1):
    return [x0, y0, x1 - x0, y1 - y0]


def collect(server, first_seed, count, held_out):
    """COCO's ground truth and results."""
    truth = {"images": [], "annotations": [],
             "categories": [{"id": i, "name": name} for i, name in enumerate(layouts.LABELS)]}
    results = []
    for i in range(count):
        image, found = layouts.draw(first_seed + i, held_out)
        truth["images"].append({"id": i, "width": image.width, "height": image.height})
        for label, box in found:
            box = corner_and_size(*map(float, box))
            truth["annotations"].append({
                "id": len(truth["annotations"]) + 1, "image_id": i, "iscrowd": 0, "bbox": box,
                "category_id": layouts.LABELS.index(label), "area": box[2] * box[3]})
        for one in detect(server, image):
            results.append({"image_id": i, "category_id": layouts.LABELS.index(one["label"]),
                            "bbox": corner_and_size(*(one[k] for k in ("x0", "y0", "x1", "y1"))),
                            "score": one["score"]})
    return truth, results


def average_precision(truth, results):
    """[labels] of AP and of AP50; nan for a label that no page has."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        run = COCOeval(coco, coco.loadRes(results), "bbox")
        run.params.maxDets = [1, 10, 200]
        run.evaluate()
        run.accumulate()
    precision = run.eval["precision"][:, :, :, 0, -1]  # [IoU, recall, label]
    precision = np.where(precision < 0, np.nan, precision)
    return np.nanmean(precision, (0, 1)), np.nanmean(precision[0], 0)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args(arguments)
    for name, first_seed, held_out in SPLITS:
        truth, results = collect(options.server, first_seed, options.count, held_out)
        whole, half = average_precision(truth, results)
        print(f"\n{name}, {options.count} pages: AP {np.nanmean(whole):.3f}, "
              f"AP50 {np.nanmean(half):.3f}\n\n| label | boxes | AP | AP50 |\n|---|---|---|---|")
        for i, label in enumerate(layouts.LABELS):
            boxes = sum(a["category_id"] == i for a in truth["annotations"])
            print(f"| {label} | {boxes} | {whole[i]:.3f} | {half[i]:.3f} |")


if __name__ == "__main__":
    main()
