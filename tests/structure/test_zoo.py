"""The bundled models as directories: small, described, and no tensor missing or unknown."""

import json
import pathlib
import struct

import pytest

ZOO = pathlib.Path(__file__).resolve().parents[2] / "models/zoo"
MODELS = sorted(path.parent for path in ZOO.glob("*/config.json"))
CAUSAL = [path for path in MODELS
          if json.loads((path / "config.json").read_text())["model_type"] == "transformer_ls"]
LARGEST_BYTES = 25 * 10**6


def shapes(model):
    """Tensor names and shapes of model.safetensors; REQUIRES that the file has no gap."""
    data = (model / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    assert max(tensor["data_offsets"][1] for tensor in header.values()) == len(data) - 8 - size
    return {name: tensor["shape"] for name, tensor in header.items()}


def causal_shapes(config):
    """What a Transformer-LS language model without projection biases consists of."""
    d, inner, heads = config["d_model"], config["d_inner"], config["n_head"]
    scores = heads * config["chunk_rank"]
    layer = {"attn.dconv_1.weight": [scores, d], "attn.dconv_1.bias": [scores],
             "attn.r_net.weight": [d, d], "attn.r_net_chunk.weight": [d, d],
             "attn.r_net_chunk.bias": [d], "attn.r_r_bias": [1, heads, 1, d // heads],
             "attn.r_w_bias": [1, heads, 1, 1, d // heads],
             "ff.fc1.weight": [inner, d], "ff.fc1.bias": [inner],
             "ff.fc2.weight": [d, inner], "ff.fc2.bias": [d]}
    layer |= {f"attn.proj_{name}.weight": [d, d] for name in ("query", "key", "val", "out")}
    layer |= {f"{norm}.{part}": [d] for part in ("weight", "bias")
              for norm in ("norm1", "norm2", "attn.dual_ln_dproj", "attn.dual_ln_win")}
    vocabulary = config["vocab_size"]
    whole = {"in_emb.weight": [vocabulary, d], "out_emb.bias": [vocabulary]}
    whole |= {f"layers.{i}.{name}": shape for i in range(config["n_layer"])
              for name, shape in layer.items()}
    return {f"decoder.model.{name}": shape for name, shape in whole.items()}


def test_there_are_models():
    assert MODELS


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_small_and_described(model):
    assert sum(path.stat().st_size for path in model.iterdir()) <= LARGEST_BYTES
    card = (model / "README.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {model.name}\n") and "models/train/" in card


@pytest.mark.parametrize("model", CAUSAL, ids=lambda path: path.name)
def test_causal_models_are_complete(model):
    config = json.loads((model / "config.json").read_text())
    assert config["architectures"] == ["TransformerLSForCausalLM"] and not config["use_bias"]
    assert config["tokenizer"] == {"type": "bytes", "offset": 0}
    assert shapes(model) == causal_shapes(config)
    generation = json.loads((model / "generation_config.json").read_text())
    assert generation["eos_token_id"] == config["eos_token_id"] < config["vocab_size"]
