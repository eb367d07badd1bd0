"""Asks a server about pictures that training never saw, and prints the tables of the model's card.

    python evaluate.py --server 127.0.0.1:8000 [--count 350] [--photos DIR] [--documents DIR]

With `--documents` windows of rendered pages of held-out packages (../documents) are asked about. Else pictures are
drawn anew from seeds of their own and sent as PNG of their full size; `--photos` adds real photographs to the
held-out styles.
"""

import argparse
import collections
import io
import json
import pathlib
import urllib.request

import documents
import kinds

MODEL = "page-type"
SPLITS = (("drawn like training, other seeds", 3 * 10 ** 6, False),
          ("held-out styles", 4 * 10 ** 6, True))


def ask(server, picture, kind="image/png"):
    request = urllib.request.Request(f"http://{server}/v1/classify?model={MODEL}", picture,
                                     {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["labels"][0]


def as_png(image):
    packed = io.BytesIO()
    image.save(packed, "PNG")
    return packed.getvalue()


def drawn(first_seed, count, held_out):
    """(label, PNG)"""
    for i in range(count):
        label = kinds.LABELS[i % len(kinds.LABELS)]
        yield label, as_png(kinds.draw(label, first_seed + i, held_out))


def table(counts):
    """Rows of a confusion table: truth, then how many were taken for each label."""
    lines = ["| is \\ named | " + " | ".join(kinds.LABELS) + " | right |",
             "|---" * (len(kinds.LABELS) + 2) + "|"]
    for label in kinds.LABELS:
        row = [counts[label, other] for other in kinds.LABELS]
        if sum(row):
            lines.append(f"| {label} | " + " | ".join(map(str, row))
                         + f" | {counts[label, label] / sum(row):.3f} |")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--count", type=int, default=350)
    parser.add_argument("--photos", type=pathlib.Path)
    parser.add_argument("--documents", type=pathlib.Path)
    options = parser.parse_args(arguments)
    splits = [(name, drawn(first_seed, options.count, held_out)) for name, first_seed, held_out in SPLITS]
    if options.documents:
        found = documents.pictures(options.documents / "held_out", options.count, wear=False)
        splits = [("held-out documents", ((label, as_png(image)) for label, image in found))]
    for name, pictures in splits:
        counts = collections.Counter((label, ask(options.server, picture)["name"]) for label, picture in pictures)
        right = sum(counts[label, label] for label in kinds.LABELS)
        print(f"\n{name}: {right / counts.total():.3f} of {counts.total()}\n\n{table(counts)}")
    if options.photos:
        named = collections.Counter(ask(options.server, path.read_bytes(), "image/jpeg")["name"]
                                    for path in sorted(options.photos.glob("*.jp*g")))
        print(f"\nreal photographs: {named['photo']} of {sum(named.values())} named photo; {dict(named)}")


if __name__ == "__main__":
    main()
