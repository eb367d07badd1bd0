"""Mean average precision of the served detector on pages that training never saw.

    python evaluate.py --server 127.0.0.1:8000 --documents DIR [--count 200]   # rendered, of held-out packages
    python evaluate.py --server 127.0.0.1:8000 [--count 200]                   # drawn
    python evaluate.py --store DIR --count 4 [--documents DIR]   # as files: pictures and COCO's truth.json
    python evaluate.py --server 127.0.0.1:8000 --pages DIR       # those

Prints COCO's AP (IoU 0.50 to 0.95) and AP50 by label: for windows of documents of packages that training never saw,
or for pages drawn like training and for held-out styles. Pages are sent at full size.
"""

import argparse
import contextlib
import io
import json
import pathlib
import urllib.request

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from PIL import Image

import layouts
import samples

MODEL = "page-layout"
HELD_OUT = ("held-out styles", 2 * 10 ** 8, True)
SPLITS = (("drawn like training, other seeds", 10 ** 8, False), HELD_OUT)


def detect(server, picture, kind="image/png"):
    request = urllib.request.Request(
        f"http://{server}/v1/detect?model={MODEL}&score_threshold=0.05&max_detections=200", picture,
        {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["detections"]


def corner_and_size(x0, y0, x1, y1):
    return [x0, y0, x1 - x0, y1 - y0]


def add_page(truth, name, size, found):
    """COCO's entries of one more page."""
    number = len(truth["images"])
    truth["images"].append({"id": number, "file_name": name, "width": size[0], "height": size[1]})
    for label, box in found:
        box = corner_and_size(*map(float, box))
        truth["annotations"].append({
            "id": len(truth["annotations"]) + 1, "image_id": number, "iscrowd": 0, "bbox": box,
            "category_id": layouts.LABELS.index(label), "area": box[2] * box[3]})


def no_pages():
    return {"images": [], "annotations": [],
            "categories": [{"id": i, "name": name} for i, name in enumerate(layouts.LABELS)]}


def results_of(detections, number):
    """COCO's results of what the server found on page `number`."""
    return [{"image_id": number, "category_id": layouts.LABELS.index(one["label"]),
             "bbox": corner_and_size(*(one[k] for k in ("x0", "y0", "x1", "y1"))),
             "score": one["score"]} for one in detections]


def drawn(first_seed, count, held_out):
    """(image, [(label, box)]) of pages drawn for this."""
    return (layouts.draw(first_seed + number, held_out) for number in range(count))


def rendered(folder, count):
    """(image, [(label, box)]) of windows of held-out documents: the upper end of each strip and, where it is long
    enough, its lower one; of all packages in turn."""
    strips, most = samples.windows.strips(folder / "held_out"), 0
    for strip in strips:
        wide, high = layouts.SIZE if strip[1]["width"] == layouts.SIZE[0] else layouts.SIZE[::-1]
        left = strip[1]["height"] - high
        for top in (0, left) if left > high / 2 else (0,):
            pixels, found = samples.windows.window(strip, top, (wide, min(high, strip[1]["height"])))
            if most == count:
                return
            if found:
                most += 1
                yield Image.fromarray(pixels), found


def answered(server, pages):
    """COCO's truth and the server's results for pages."""
    truth, results = no_pages(), []
    for number, (image, found) in enumerate(pages):
        add_page(truth, f"{number}.png", image.size, found)
        packed = io.BytesIO()
        image.save(packed, "PNG")
        results += results_of(detect(server, packed.getvalue()), number)
    return truth, results


def stored(server, folder):
    """The same for pages that `store` wrote, perhaps when there were fewer labels."""
    truth = json.loads((folder / "truth.json").read_text())
    names = {one["id"]: one["name"] for one in truth["categories"]}
    for one in truth["annotations"]:
        one["category_id"] = layouts.LABELS.index(names[one["category_id"]])
    truth["categories"] = no_pages()["categories"]
    results = [one for page in truth["images"] for one in results_of(
        detect(server, (folder / page["file_name"]).read_bytes(), "image/jpeg"), page["id"])]
    return truth, results


def store(folder, pages):
    folder.mkdir(parents=True, exist_ok=True)
    truth = no_pages()
    for number, (image, found) in enumerate(pages):
        name = f"page-{number}.jpg"
        image.save(folder / name, "JPEG", quality=80)
        add_page(truth, name, image.size, found)
    (folder / "truth.json").write_text(json.dumps(truth) + "\n")


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


def table(name, truth, results):
    whole, half = average_precision(truth, results)
    lines = [f"\n{name}, {len(truth['images'])} pages: AP {np.nanmean(whole):.3f}, "
             f"AP50 {np.nanmean(half):.3f}\n", "| label | boxes | AP | AP50 |", "|---|---:|---:|---:|"]
    for i, label in enumerate(layouts.LABELS):
        boxes = sum(a["category_id"] == i for a in truth["annotations"])
        lines.append(f"| {label} | {boxes} | {whole[i]:.3f} | {half[i]:.3f} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--store", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--pages", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--documents", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args(arguments)
    if not options.server and not options.store:
        parser.error("--server or --store")
    if options.pages:
        return print(table(options.pages.name, *stored(options.server, options.pages)))
    splits = [(name, drawn(first_seed, options.count, held_out)) for name, first_seed, held_out in SPLITS]
    if options.documents:
        splits = [("held-out documents", rendered(options.documents, options.count))]
    if options.store:
        return store(options.store, splits[-1][1])
    for name, pages in splits:
        print(table(name, *answered(options.server, pages)), flush=True)
    return None


if __name__ == "__main__":
    main()
