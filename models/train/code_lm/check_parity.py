"""Compares a running server's logits with model.py's on a source text.

    longview-server --http_port=8080 --dtype=fp32 models/zoo/code-lm
    python check_parity.py [--url http://127.0.0.1:8080] [--text FILE] [--bytes 6000]

Exit status 1 if a logit differs by more than 1e-4 relative to the largest one.
"""
import argparse
import json
import pathlib
import sys
import urllib.request

import numpy
import torch

import documents
import model as architecture

ZOO = pathlib.Path(__file__).resolve().parents[2] / "zoo" / "code-lm"


def served(url, name, ids):
    """[n, V] logits of one row of ids."""
    body = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(ids)], "data": ids}],
            "outputs": [{"name": "logits"}], "parameters": {"max_tokens": 0}}
    call = urllib.request.Request(f"{url}/v2/models/{name}/infer", json.dumps(body).encode(),
                                  {"content-type": "application/json"})
    with urllib.request.urlopen(call) as answer:
        output = json.load(answer)["outputs"][0]
    return torch.tensor(output["data"]).reshape(output["shape"])[0]


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", type=pathlib.Path, default=ZOO)
    parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path(__file__))
    parser.add_argument("--bytes", type=int, default=6000)
    options = parser.parse_args()
    data = numpy.frombuffer(options.text.read_bytes(), numpy.uint8)
    ids = [documents.BOUNDARY, *numpy.resize(data, options.bytes).tolist()]
    ours = architecture.load(options.model)(torch.tensor([ids]))[0]
    worst = (served(options.url, options.model.resolve().name, ids) - ours).abs().max().item()
    print(f"{len(ids)} tokens: largest difference {worst:.2e}, largest logit {ours.abs().max():.2f}")
    sys.exit(worst > 1e-4 * ours.abs().max().item())


if __name__ == "__main__":
    main()
