"""Recall among the pieces of packages that training never saw, beside BM25; from a server's answers.

    build/bin/longview-server --http_port 8080 models/zoo &
    python evaluate.py --work DIR [--url http://localhost:8080] [--model code-search]

Each held-out package of at least FEWEST pieces is a repository to search: its questions against all
its pieces. The model has the pieces by themselves, and with --late also in one pass over each file,
from which what became a question was taken out. The sum is of the z-scores of stemmed BM25 and the
model, as `longview search` has it. Prints the tables of the model card.

    python evaluate.py --questions questions.json --client ../../../build/bin/longview [--server HOST:PORT]

prints where `longview search` ranks the right place of each question about this repository.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import urllib.request

import numpy

from recall import reciprocal, recall

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROOMS = ["kernels", "models", "server", "client", "deploy", "tests"]
QUESTIONS = "models/train/code_search/questions.json"  # Which holds their words itself.
STEMMED = "BM25, identifiers cut, stemmed"

FEWEST = 40
AT_ONCE = 64          # Texts of a request.
LONGEST_FILE = 60000  # Letters that are sent at once; of longer files the neighbourhood.
NEAR = 6000           # Letters on both sides, there.


class Server:
    def __init__(self, url, model):
        self.url, self.model = url, model

    def embed(self, **body):
        data = json.dumps({"model": self.model, **body}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + "/v1/embeddings", data)) as answer:
            return [entry["embedding"] for entry in json.load(answer)["data"]]

    def texts(self, texts, prompt):
        rows = []
        for at in range(0, len(texts), AT_ONCE):
            rows += self.embed(input=texts[at:at + AT_ONCE], prompt_name=prompt)
        return numpy.array(rows, dtype=numpy.float32)

    def late(self, file):
        ranges = [(begin, end) for _, begin, end, _ in file["pairs"]]
        if len(file["text"]) <= LONGEST_FILE:
            return self.embed(input=file["text"], prompt_name="document", chunks=ranges)
        rows = []
        for begin, end in ranges:
            low = max(0, begin - NEAR)
            rows += self.embed(input=file["text"][low:end + NEAR], prompt_name="document",
                               chunks=[(begin - low, end - low)])
        return rows


def repositories(path, most):
    """{package: [files]} of those that are large enough, up to so many pieces of each."""
    from train_tokenizer import files
    found, counts = collections.defaultdict(list), collections.Counter()
    for file in files(path):
        if counts[file["package"]] < most:
            found[file["package"]].append(file)
            counts[file["package"]] += len(file["pairs"])
    return {package: of_package for package, of_package in sorted(found.items())
            if sum(len(file["pairs"]) for file in of_package) >= FEWEST}


def standardised(scores):
    """Z-scores of each question's row."""
    deviation = scores.std(1, keepdims=True)
    return (scores - scores.mean(1, keepdims=True)) / numpy.where(deviation > 0, deviation, 1)


def scores(server, of_package, late):
    """{way: [questions, pieces]}, kinds"""
    import bm25
    pairs = [(question, file["text"][begin:end], kind) for file in of_package
             for question, begin, end, kind in file["pairs"]]
    questions, pieces, kinds = zip(*pairs)
    found = {way: bm25.scores(way, questions, pieces) for way in bm25.WAYS}
    asked = server.texts(questions, "query")
    found[server.model] = asked @ server.texts(pieces, "document").T
    found["sum"] = standardised(found[STEMMED]) + standardised(found[server.model])
    if late:
        found[server.model + ", late chunking"] = \
            asked @ numpy.array([row for file in of_package for row in server.late(file)]).T
    return found, kinds


def table(title, results, groups):
    ways = list(results)
    print(f"| {title} | questions | " + " | ".join(ways) + " |")
    print("|---|---:|" + "---:|" * len(ways))
    for name, chosen in groups:
        print(f"| {name} | {len(chosen):,} | "
              + " | ".join(f"{results[way][chosen].mean():.3f}" for way in ways) + " |")
    print()


def place_of(client, question, by):
    """Where the search ranks the right place, from 1, and of how many; None: nowhere."""
    done = subprocess.run([*client, f"--by={by}", "--json", "--top=10000", *ROOMS, question["question"]],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    places = [json.loads(line) for line in done.stdout.splitlines()]
    places = [place for place in places if place["input"] != QUESTIONS]
    for rank, place in enumerate(places, start=1):
        if place["input"] == question["path"] and question["contains"] in place["text"]:
            return rank
    return None


def ask_about_this_repository(options):
    client = [options.client.resolve(), "search", f"--server={options.server}"]
    ways = ["words", "vectors", "both"]
    print("| question | the right place | " + " | ".join(ways) + " |\n|---|---|" + "---:|" * len(ways))
    for question in json.loads(options.questions.read_text()):
        ranks = [place_of(client, question, by) for by in ways]
        print(f"| {question['question']} | `{question['path']}` | "
              + " | ".join("none" if rank is None else f"{rank:,}" for rank in ranks) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--questions", type=pathlib.Path)
    parser.add_argument("--client", type=pathlib.Path, default=ROOT / "build/bin/longview")
    parser.add_argument("--server", default="localhost:9000")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--url", default="http://localhost:8080")
    parser.add_argument("--model", default="code-search")
    parser.add_argument("--most", type=int, default=10**6, help="pieces of a package, about")
    options = parser.parse_args()
    if options.questions:
        return ask_about_this_repository(options)
    if not options.work:
        parser.error("--work or --questions is needed")
    server = Server(options.url, options.model)
    hits, places = collections.defaultdict(list), collections.defaultdict(list)
    kinds, packages = [], []
    for package, of_package in repositories(options.work / "test.jsonl", options.most).items():
        found, of_questions = scores(server, of_package, options.late)
        wanted = numpy.arange(len(of_questions))
        for way, matrix in found.items():
            hits[way].extend(recall(matrix, wanted))
            places[way].extend(reciprocal(matrix, wanted))
        kinds.extend(of_questions)
        packages.extend([package] * len(of_questions))
    hits, places = ({way: numpy.array(values) for way, values in found.items()} for found in (hits, places))
    kinds, packages = numpy.array(kinds), numpy.array(packages)
    everything = [("all", numpy.arange(len(kinds)))]
    table("recall@10", hits, everything + [(kind, numpy.flatnonzero(kinds == kind))
                                           for kind in sorted(set(kinds))])
    table("mean reciprocal rank within ten", places, everything)
    table("recall@10 by package", hits, [(package, numpy.flatnonzero(packages == package))
                                         for package in sorted(set(packages))])


if __name__ == "__main__":
    main()
