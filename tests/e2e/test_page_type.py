"""The bundled classifier of pages names what fills a picture, in every form a picture may come."""

import base64
import json
import pathlib
import urllib.request

import pytest

PICTURES = pathlib.Path(__file__).resolve().parents[1] / "golden/pages"
MODEL = "page-type"


def classify(server, body, kind):
    request = urllib.request.Request(f"http://{server.http}/v1/classify?model={MODEL}", body,
                                     {"Content-Type": kind})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["labels"]


@pytest.mark.parametrize("label", ["chart", "code", "diagram", "form", "photo", "table", "text"])
def test_pictures_are_named(zoo_server, label):
    picture = (PICTURES / f"{label}.jpg").read_bytes()
    labels = classify(zoo_server, picture, "image/jpeg")
    assert labels[0]["name"] == label, labels
    scores = [one["score"] for one in labels]
    assert scores == sorted(scores, reverse=True) and sum(scores) <= 1 + 1e-3
    body = json.dumps({"model": MODEL, "image": base64.b64encode(picture).decode()}).encode()
    assert classify(zoo_server, body, "application/json") == labels
