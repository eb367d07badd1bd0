"""The language model of Transformer-LS with random weights and configurations beside the authors'
code, drawn anew in every run (slow; needs torch). LONGVIEW_SEED repeats a run.

  git clone https://github.com/NVIDIA/transformer-ls
  git -C transformer-ls checkout 1527c5c
  LONGVIEW_TRANSFORMER_LS=transformer-ls python -m pytest \
      tests/e2e/test_transformer_ls_lm_settings.py

Their modules need only a norm and an activation of fairseq, which stand in below. Where nothing may
be seen before the text ("zero_memory": "none"), their masks are widened.
"""

import math
import os
import pathlib
import sys
import types

import numpy
import pytest
from drawn_models import (SEED, assert_same, checkout, draw_weights, infer, seeded, serve,
                          write_model)

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

MODELS = 30
REQUESTS = 3  # Of each model.
SURE = 1e-3   # Tokens whose lead is smaller are not compared.


def import_authors():
    """Their package without its start, which registers tasks with fairseq."""
    checkout("LONGVIEW_TRANSFORMER_LS", "NVIDIA/transformer-ls", "autoregressive")
    norm = types.ModuleType("fairseq.modules.layer_norm")
    norm.LayerNorm = lambda width, export=False: torch.nn.LayerNorm(width)
    gelu = types.ModuleType("fairseq.modules.gelu")
    gelu.gelu = torch.nn.functional.gelu
    package = types.ModuleType("model_lib")
    package.__path__ = [str(pathlib.Path(os.environ["LONGVIEW_TRANSFORMER_LS"]) /
                            "autoregressive/model_lib")]
    for module in (types.ModuleType("fairseq"), types.ModuleType("fairseq.modules"), norm, gelu,
                   package):
        sys.modules.setdefault(module.__name__, module)
    from model_lib import layer, model
    return layer.ChunkedLSAttention, model.TransformerLSModel


def draw_config(rng):
    segment, heads = rng.choice([1, 2, 4, 5, 8, 16]), rng.choice([1, 2, 3])
    window = segment + rng.choice([0, 0, 1, 3, 8, 16, 48])
    config = {"model_type": "transformer_ls", "architectures": ["TransformerLSForCausalLM"],
              "vocab_size": rng.choice([256, 300]), "d_model": heads * rng.choice([2, 4, 6, 16]),
              "n_head": heads, "d_inner": rng.choice([7, 32]), "n_layer": rng.choice([1, 2, 3]),
              "window_len": window, "chunk_size": segment, "chunk_rank": rng.choice([1, 1, 2, 3]),
              "use_bias": rng.random() < 0.4, "pre_ln": rng.random() < 0.6,
              "use_gelu": rng.random() < 0.6, "clamp_len": rng.choice([-1, -1, 3]),
              "cpos_clamp_len": rng.choice([-1, -1, 2]),
              "inv_freq": rng.choice(["from_file", "exact"]), "schedule": "paper"}
    if rng.random() < 0.5:
        both = math.lcm(segment, window)
        config["schedule"] = "blocks"
        config["block_len"] = rng.choice(
            [segment * rng.randrange(1, window // segment + 1), min(both, 200), 2 * both])
        config["mem_len"] = -(-window // segment) * segment + segment * rng.choice([0, 0, 1, 5, 40])
        if config["block_len"] % segment or (config["block_len"] > window and
                                             config["block_len"] % window):
            config["block_len"] = segment
        config["zero_memory"] = rng.choice(["reference", "none"])
    return config


def build(attention, base, config):
    """The authors' model; with `start` set, nothing before that many tokens of a block is seen."""
    class FromStart(attention):
        start = None  # Position of the block's first token, or None: zeros before it are seen.

        def get_diagonals(self, scores):
            seen = super().get_diagonals(scores)
            if self.start is None:
                return seen
            queries, window = seen.shape[2:]
            place = torch.arange(queries)[:, None] + torch.arange(window) - window + 1 + self.start
            return seen.masked_fill(place < 0, -torch.inf)

        def attn(self, query, *given):
            *given, mask = given
            if self.start is not None:
                before = max(0, self.memory - self.start) // self.chunk_size * self.chunk_rank
                mask = mask.clone()
                mask[..., :before] = True
            return super().attn(query, *given, mask)

    model = base(config["vocab_size"], config["d_model"], config["d_inner"], config["n_head"],
                 config["n_layer"], 0, 0, config["chunk_rank"], config["chunk_size"],
                 config["window_len"], 0, config["use_bias"], config["pre_ln"],
                 config["use_gelu"], False, config["clamp_len"], config["cpos_clamp_len"]).eval()
    for layer in model.layers:
        layer.attn.__class__ = FromStart
    return model


def theirs(config, model, ids):
    """Log-probabilities after every token."""
    segment, window = config["chunk_size"], config["window_len"]
    both = math.lcm(segment, window)
    block = config.get("block_len", -(-len(ids) // both) * both)
    memory = config.get("mem_len", -(-window // segment) * segment)
    model.mem_len = memory
    cache = [torch.zeros(1, memory, config["d_model"]) for _ in model.layers]
    padded = torch.zeros(1, -(-len(ids) // block) * block, dtype=torch.long)
    padded[0, :len(ids)] = torch.tensor(ids)
    rows = []
    for start in range(0, padded.shape[1], block):
        for layer in model.layers:
            layer.attn.memory = memory
            layer.attn.start = None if config.get("zero_memory") == "reference" else start
        out, cache, _ = model(padded[:, start:start + block], cache)
        rows.append(out[0])
    return torch.cat(rows)[:len(ids)]


def compare_logits(server, name, config, model, rng):
    length = rng.choice([1, 2, 7, config["chunk_size"], config["window_len"] + 1, 90, 200])
    ids = [rng.randrange(config["vocab_size"]) for _ in range(length)]
    got = infer(server, name, {"input_ids": numpy.array([ids])}, ["logits"], {"max_tokens": 0})
    what = f"{name}, {ids}: {config}"
    logits = torch.tensor(got["logits"][0]).log_softmax(-1)
    return assert_same(logits.numpy(), theirs(config, model, ids).numpy(), what)


def compare_greedy(server, name, config, model, rng):
    """Every token is what the authors' code would say after those before it."""
    ids = [rng.randrange(config["vocab_size"]) for _ in range(rng.choice([1, 5, 33, 130]))]
    got = infer(server, name, {"input_ids": numpy.array([ids])}, ["token_ids"],
                {"max_tokens": 40, "do_sample": False})
    what = f"{name}, {ids}: {config}"
    added = got["token_ids"][0].tolist()
    rows = theirs(config, model, ids + added[:-1])[len(ids) - 1:]
    for row, token in zip(rows, added):
        best = row.topk(2)
        assert best.indices[0] == token or best.values[0] - row[token] < SURE, (SEED, added, what)


def test_configurations_as_the_authors(tmp_path):
    authors = import_authors()
    rng = seeded()
    drawn = []
    for index in range(MODELS):
        config = draw_config(rng)
        model = build(*authors, config)
        draw_weights(model)
        tensors = {f"decoder.model.{name}": tensor for name, tensor in model.state_dict().items()}
        frequencies = "decoder.model.pos_emb.inv_freq"
        tensors[frequencies] = tensors[frequencies].half()
        if rng.random() < 0.3:
            del tensors[frequencies]
        elif config["inv_freq"] == "from_file":
            model.pos_emb.inv_freq = tensors[frequencies].float()
        write_model(tmp_path / f"model-{index}", config, tensors)
        drawn.append((config, model))
    with serve(tmp_path) as server, torch.no_grad():
        for index, (config, model) in enumerate(drawn):
            for _ in range(REQUESTS):
                compare_logits(server, f"model-{index}", config, model, rng)
                compare_greedy(server, f"model-{index}", config, model, rng)
