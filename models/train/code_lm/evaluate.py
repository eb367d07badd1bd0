"""Bits per byte on source text of packages that training never saw.

    python evaluate.py --work DIR [--model MODEL_DIRECTORY] [--length 8192] [--per_group 1] [--every N]

A text is `length` bytes of one package and language from where a file begins; --every takes
one of N. Prints the model's figures with and without its far memory, by language and by position,
beside gzip and xz (each text by itself, containers' headers included) and an n-gram model counted
on the very bytes that the model was trained on. The last line compares the stored fp16 weights
with the fp32 ones of DIR/code-lm/cooled.pt, if they are there.
"""
import argparse
import collections
import gzip
import lzma
import math
import pathlib

import numpy
import torch
import torch.nn.functional as F

import documents
import model as architecture
import ngram
import train

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo" / "code-lm"
EDGES = [0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768]
NGRAM_ORDERS = range(3, 8)


@torch.no_grad()
def model_bits(model, data, far):
    """Bits of every byte of one text."""
    ids = torch.from_numpy(numpy.concatenate([[documents.BOUNDARY], data]).astype(numpy.int64))
    logits = model(ids[None, :-1], far)[0]
    return F.cross_entropy(logits, ids[1:], reduction="none").double().numpy() / math.log(2)


def trained_on(work, saved):
    """The bytes of all batches up to the checkpoint's step, in order."""
    corpus = documents.Corpus(work / "code-lm" / "train.npz")
    rows = [corpus.batch(saved["seed"], step, *train.shape(step, saved["widen"])).ravel()
            for step in range(saved["step"])]
    ids = numpy.concatenate(rows)
    return ids[ids < 256].astype(numpy.uint8)


def compressors(texts):
    """Bits per byte of all texts, by name."""
    size = sum(len(text) for text in texts)
    gzipped = sum(len(gzip.compress(text.tobytes(), 9)) for text in texts)
    packed = sum(len(lzma.compress(text.tobytes(), preset=9 | lzma.PRESET_EXTREME)) for text in texts)
    return {"gzip -9": 8 * gzipped / size, "xz -9e": 8 * packed / size}


def table(title, rows):
    print(f"\n| {title} | bytes | with far memory | window only |\n|---|---|---|---|")
    for name, near, far in rows:
        print(f"| {name} | {near.size} | {far.mean():.3f} | {near.mean():.3f} |")


def report(names, near, far):
    """near, far: [texts, length] bits of every byte, window only and with the far memory."""
    table("language", [(language, near[names == language], far[names == language])
                       for language in documents.LANGUAGES if (names == language).any()])
    edges = [edge for edge in EDGES if edge <= near.shape[1]]
    table("position", [(f"{a} to {b}", near[:, a:b], far[:, a:b])
                       for a, b in zip(edges, edges[1:])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, default=ZOO)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--per_group", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = documents.Corpus(options.work / "code-lm" / "test.npz")
    held_out = list(corpus.held_out(options.length, options.per_group))[::options.every]
    names = numpy.array([name.split(" ")[-1] for name, _ in held_out])
    texts = [text for _, text in held_out]
    packages = len({name.rsplit(" ", 1)[0] for name, _ in held_out})
    print(f"{len(texts)} texts of {options.length} bytes from {packages} packages: "
          f"{dict(collections.Counter(names.tolist()))}")
    model = architecture.load(options.model)
    far = numpy.stack([model_bits(model, text, True) for text in texts])
    near = numpy.stack([model_bits(model, text, False) for text in texts])
    results = {"code-lm": far.mean(), "code-lm, window only": near.mean(), **compressors(texts)}
    cooled = options.work / "code-lm" / "cooled.pt"
    if cooled.exists():
        saved = torch.load(cooled, map_location="cpu")
        data = trained_on(options.work, saved)
        print(f"trained on {len(data) / 1e6:.2f} MB in {saved['step']} steps")
        for order in NGRAM_ORDERS:
            counted = ngram.Ngram(data, order)
            results[f"{order + 1}-gram"] = numpy.mean([counted.bits(text).mean() for text in texts])
    print("\n| | bits per byte |\n|---|---|")
    for name, bits in results.items():
        print(f"| {name} | {bits:.3f} |")
    report(names, near, far)
    if cooled.exists():
        model.load_state_dict(saved["model"])
        exact = numpy.mean([model_bits(model, text, True).mean() for text in texts[:8]])
        print(f"\nfp32 weights on the first 8 texts: {exact:.5f}, stored ones: {far[:8].mean():.5f}")


if __name__ == "__main__":
    main()
