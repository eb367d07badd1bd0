"""Accuracy, size and speed of exported classifiers as a running server has them.

    build/bin/longview-server --http_port 8080 DIR/models &
    python evaluate.py --task listops --work DIR [--url http://localhost:8080] [--limit 2000]

Sends the test documents as token ids, one by one, to every model called <task>-<family>; prints a
Markdown table: accuracy, parameters, the median of the server's compute time per document at each
of --lengths symbols (documents cut, or joined, to that length; a length beyond the model's limit is
left out), and the memory that a document of the longest of them needs beside the weights.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import urllib.error
import urllib.request

import numpy

import task as tasks

_COMPUTE = re.compile(r"compute;dur=([\d.]+)")


class Server:
    def __init__(self, url):
        self.url = url

    def call(self, path, body=None):
        """(JSON answer, milliseconds of computing)."""
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data)) as answer:
            timing = _COMPUTE.search(answer.headers.get("Server-Timing", ""))
            return json.load(answer), float(timing[1]) if timing else None

    def models(self):
        return {entry["id"]: entry for entry in self.call("/v1/models")[0]["data"]}

    def label(self, model, ids):
        """(most likely label, milliseconds)."""
        inputs = [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(ids)], "data": ids}]
        answer, milliseconds = self.call(f"/v2/models/{model}/infer",
                                         {"inputs": inputs, "outputs": [{"name": "logits"}]})
        return int(numpy.argmax(answer["outputs"][0]["data"])), milliseconds


def ids_of(documents, form, task):
    return tasks.padded([documents], form, task)[0][0].tolist()


def document_of(documents, length, offset):
    """`length` symbols of documents one after the other."""
    parts, have = [], 0
    while have < length:
        part = documents[offset % len(documents)][:length - have]
        parts.append(part)
        have, offset = have + len(part), offset + 1
    return numpy.concatenate(parts)


def evaluate(server, model, family, task, documents, options):
    form = tasks.family(family)
    right = 0
    count = min(options.limit, len(documents))
    for index in range(count):
        label, _ = server.label(model, ids_of(documents[index], form, task))
        right += label == documents.labels[index]
    row = {"accuracy": 100 * right / count, "milliseconds": {}, "bytes": None}
    for length in options.lengths:
        try:
            times = [server.label(model, ids_of(document_of(documents, length, start), form, task))[1]
                     for start in range(options.repeats)]
        except urllib.error.HTTPError as error:
            if error.code != 400:
                raise
            continue
        row["milliseconds"][length] = statistics.median(times)
        ids = ids_of(document_of(documents, length, 0), form, task)
        estimate, _ = server.call("/v1/estimate", {"model": model, "num_tokens": len(ids)})
        row["bytes"] = estimate["workspace_bytes"]
    return row


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--task", default="listops")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--url", default="http://localhost:8080")
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--lengths", default="1024,2048,4096",
                        type=lambda text: [int(n) for n in text.split(",")])
    options = parser.parse_args(arguments)
    server = Server(options.url)
    task, splits = tasks.read(options.work, options.task)
    served = server.models()
    print("| | accuracy | parameters | "
          + " | ".join(f"{n:,} symbols" for n in options.lengths) + " | memory |")
    print("| --- | ---: | ---: | " + "---: | " * (len(options.lengths) + 1))
    found = [family for family in tasks.FAMILIES if f"{options.task}-{family}" in served]
    for family in found:
        model = f"{options.task}-{family}"
        row = evaluate(server, model, family, task, splits["test"], options)
        times = [f"{row['milliseconds'][n]:.2f} ms" if n in row["milliseconds"] else ""
                 for n in options.lengths]
        print(f"| {family} | {row['accuracy']:.1f} % | {served[model]['parameters']:,.0f} | "
              + " | ".join(times) + f" | {(row['bytes'] or 0) / 1e6:.1f} MB |")
    return 0 if found else f"no model {options.task}-* at {options.url}"


if __name__ == "__main__":
    sys.exit(main())
