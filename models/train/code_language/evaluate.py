"""Accuracy by document on packages that training never saw.

    python evaluate.py --work DIR [--model MODEL_DIRECTORY] [--limit N] [--tokens 4096]

Reads DIR/test.npz and the exported model (models/zoo/code-language of this repository unless
given); prints accuracy, a table by language and the pairs that are confused most. --tokens cuts
every document, special tokens included; --limit takes the first N documents of each language.
"""
import argparse
import collections
import pathlib

import numpy
import torch
import transformers

import fast_forward

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo" / "code-language"


@torch.no_grad()
def predict(model, ids):
    """The most likely label of one document of token ids, specials included."""
    step = max(layer.attention.self.one_sided_attn_window_size
               for layer in model.longformer.encoder.layer)
    padded = -(-len(ids) // step) * step
    row = torch.ones(1, padded, dtype=torch.long)
    row[0, :len(ids)] = torch.from_numpy(ids)
    logits = fast_forward.logits(model, row, torch.tensor([len(ids)]), torch.arange(padded)[None] + 2)
    return int(logits.argmax())


def evaluate(model, data, tokens, limit):
    """Pairs (true label, predicted label)."""
    pairs, taken = [], collections.Counter()
    for document, label in enumerate(data["labels"]):
        if limit and taken[label] >= limit:
            continue
        taken[label] += 1
        begin, end = data["offsets"][document], data["offsets"][document + 1]
        body = data["ids"][begin:min(end, begin + tokens - 2)].astype(numpy.int64)
        pairs.append((int(label), predict(model, numpy.concatenate([[0], body, [2]]))))
    return pairs


def report(pairs, names):
    truth, guess = numpy.array(pairs).T
    print(f"{len(pairs)} documents, accuracy {(truth == guess).mean():.4f}, "
          f"mean of the languages {numpy.mean([(guess[truth == l] == l).mean() for l in set(truth)]):.4f}\n")
    print("| language | documents | recall | precision |\n|---|---|---|---|")
    for label, name in enumerate(names):
        documents, named = (truth == label).sum(), (guess == label).sum()
        right = ((truth == label) & (guess == label)).sum()
        print(f"| {name} | {documents} | {right / max(documents, 1):.3f} | {right / max(named, 1):.3f} |")
    print("\n| is | taken for | documents |\n|---|---|---|")
    wrong = collections.Counter((t, g) for t, g in pairs if t != g)
    for (t, g), count in wrong.most_common(20):
        print(f"| {names[t]} | {names[g]} | {count} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, default=ZOO)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = transformers.LongformerForSequenceClassification.from_pretrained(
        options.model, dtype=torch.float32).eval()
    pairs = evaluate(model, numpy.load(options.work / "test.npz"), options.tokens, options.limit)
    report(pairs, [model.config.id2label[i] for i in range(model.config.num_labels)])


if __name__ == "__main__":
    main()
