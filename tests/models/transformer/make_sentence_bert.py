"""Writes cases of tests/golden/sentence_transformers: directories of sentence-transformers over BERT.

    python tests/models/transformer/make_sentence_bert.py tests/golden/sentence_transformers
    # needs sentence-transformers 6.2, transformers 5, torch, sentencepiece

The shapes are those of published models, with random weights: multilingual-e5 (BERT with the Unigram
tokenizer of XLM-R, whose padding is 1, and more rows than tokens) and all-MiniLM (WordPiece, padding
0, a limit of its own, truncation and padding saved in tokenizer.json, further files beside).
The tokenizers' training breaks ties anew each time: ids of another run differ.
"""

import json
import math
import pathlib
import sys

import numpy as np
import sentence_transformers
import torch
import transformers
from safetensors.numpy import save_file
from sentence_bert_tokenizers import unigram, wordpiece

WIDTH, INNER, LAYERS = 32, 32, 2
LONG = "The longest of all texts is cut where the model ends, naïve 中文 été or not. " * 12
TEXTS = ["what is a free licence?", "Paris est la capitale de la France.", "",
         "naïve 中文 été  and  spaces", "Ünïcode, ＦＵＬＬ ｗｉｄｔｈ ﬁn, Ελληνικά, кириллица, עברית", LONG, "x"]
REFUSED = [{"dimensions": 0}, {"dimensions": WIDTH + 1}, {"prompt_name": "no such prompt"},
           {"prompt": "a", "prompt_name": "b"}]
PLAIN = {"name": "plain", "request": {}}


def bert(rows, positions, pad, seed):
    """BertModel whose every tensor moves the answer."""
    config = transformers.BertConfig(
        vocab_size=rows, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=4, max_position_embeddings=positions, pad_token_id=pad)
    model = transformers.BertModel(config).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, values in model.named_parameters():
        scale = 1 / math.sqrt(values.shape[-1]) if values.dim() > 1 else 0.3
        ones = name.endswith("LayerNorm.weight")
        values.data = ones + scale * torch.randn(values.shape, generator=generator)
    return model


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))


def sentence(folder, pooling, normalises, limit, prompts):
    """The files of the library's releases 2 to 5, by which nearly all models lie."""
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * normalises
    write(folder / "modules.json",
          [{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "",
            "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)])
    write(folder / "1_Pooling/config.json",
          {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": pooling == "cls",
           "pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_max_tokens": False,
           "pooling_mode_mean_sqrt_len_tokens": False})
    write(folder / "sentence_bert_config.json", {"max_seq_length": limit, "do_lower_case": False})
    write(folder / "config_sentence_transformers.json",
          {"__version__": {"sentence_transformers": "2.0.0"}, "prompts": prompts})


def beside(folder):
    """What else lies in such folders; none of it may be read."""
    torch.save({"embeddings.word_embeddings.weight": torch.ones(2, WIDTH)}, folder / "pytorch_model.bin")
    write(folder / "onnx/model.onnx", "of another program")
    write(folder / "onnx/config.json", {"architectures": ["BertForMaskedLM"], "hidden_size": 4})
    write(folder / "onnx/tokenizer.json", {})
    write(folder / "openvino/openvino_model.xml", "<net/>")
    write(folder / "openvino/openvino_model.bin", "of another program")
    write(folder / "README.md", "---\npipeline_tag: sentence-similarity\n---\n")
    write(folder / "data_config.json", [{"name": "of the training", "lines": 1}])


def encoded(folder, call, dtype, normalises):
    """[texts, d], each text alone, as the library reads the directory as it lies. Vectors that the
    library cuts are normalised again where whole ones are."""
    request = dict(call["request"])
    cut = "dimensions" in request
    model = sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, truncate_dim=request.pop("dimensions", None))
    model.to(dtype)
    normalize = request.pop("normalize", cut and normalises)
    return np.stack([model.encode(text, normalize_embeddings=normalize, **request) for text in TEXTS])


def record(case, what, seed, calls, facts):
    """Writes inputs, expected outputs and descriptions beside case/model."""
    folder = case / "model"
    loaded = sentence_transformers.SentenceTransformer(str(folder), local_files_only=True)
    limit = loaded.max_seq_length
    ids = [loaded.tokenizer(text, truncation=True, max_length=limit)["input_ids"] for text in TEXTS]
    save_file({f"input_ids.{i}": np.array(row, np.int64) for i, row in enumerate(ids)},
              case / "inputs.safetensors")
    outputs, error = {}, 0.0
    for call in calls:
        name = f"embedding.{call['name']}"
        single, double = (encoded(folder, call, dtype, facts["normalises"])
                          for dtype in (torch.float32, torch.float64))
        outputs[name], outputs[f"{name}.f64"] = single, double
        assert double.dtype == np.float64
        error = max(error, float(np.abs(single - double).max()))
    save_file(outputs, case / "expected.safetensors")
    write(case / "texts.json", {"texts": TEXTS, "calls": calls, "refused": REFUSED,
                                "normalizes": facts["normalises"]})
    write(case / "case.json", {
        "family": "sentence_transformers", "case": case.name,
        "source": f"sentence-transformers=={sentence_transformers.__version__} "
                  f"with transformers=={transformers.__version__}",
        "what": what, "seed": seed, "tolerance": {"embedding": 1e-05, "hidden": 0.0001},
        "inputs": {"input_ids.N": "[n] texts.json texts[N] without prompt"},
        "expected": {"embedding.<call>": "[texts,d] SentenceTransformer.encode with the call's "
                                         "settings (texts.json), after `dimensions` "
                                         "normalised again iff the directory has Normalize",
                     "*.f64": "the same pipeline in double"},
        "notes": [], "task": "embeddings", "lengths": [len(row) for row in ids],
        "prompts": facts["prompts"], "default_prompt_name": None, "pooling": facts["pooling"],
        "form": "old", "fp32_error": float(f"{error:.1e}")})


def make(root, name, what, *, tokenizer, positions, pad, limit, pooling, normalises, seed,
         prompts=None, calls=(), more_rows=0, others=False):
    case = pathlib.Path(root) / name
    folder = case / "model"
    folder.mkdir(parents=True)
    tokens = tokenizer(folder)
    bert(tokens + more_rows, positions, pad, seed).save_pretrained(folder)
    sentence(folder, pooling, normalises, limit, prompts or {})
    if others:
        beside(folder)
    record(case, what, seed, [PLAIN, *calls],
           {"pooling": pooling, "normalises": normalises, "prompts": prompts})


def main(root):
    make(root, "bert_unigram_more_rows",
         "as multilingual-e5: BERT whose padding is 0 with the Unigram tokenizer of XLM-R, whose "
         "padding is 1; 25 rows more than tokens; mean, Normalize; truncation and padding saved",
         tokenizer=lambda folder: unigram(folder, saved_limit=12), more_rows=25, positions=80, pad=0,
         limit=64, pooling="mean", normalises=True, seed=501,
         prompts={"query": "query: ", "passage": "passage: "},
         calls=[{"name": "prompt_query", "request": {"prompt_name": "query"}}])
    make(root, "bert_unigram_pad_1",
         "BERT and tokenizer with padding 1: positions begin at 0 all the same; cls, no Normalize; "
         "no limit but the positions",
         tokenizer=unigram, positions=80, pad=1, limit=None, pooling="cls",
         normalises=False, seed=502, calls=[{"name": "normalize", "request": {"normalize": True}}])
    make(root, "bert_wordpiece_limit_128",
         "as all-MiniLM: WordPiece, padding 0, a limit of 128 of 136 positions, truncation and "
         "padding to 24 saved, further files beside the weights; mean, Normalize",
         tokenizer=lambda folder: wordpiece(folder, saved_limit=24), positions=136, pad=0,
         limit=128, pooling="mean", normalises=True, seed=503, others=True,
         calls=[{"name": "dimensions_5", "request": {"dimensions": 5}}])


if __name__ == "__main__":
    main(sys.argv[1])
