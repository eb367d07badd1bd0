"""`vllm bench serve` against the server: completions, embeddings, reranking; every call is answered and counted."""

import json
import os
import pathlib
import subprocess

import pytest

import byte_tokenizer
import suite_packages
from client_models import client_models_server

VERSION = "0.33.0"
# What the benchmark itself imports; vLLM with all it depends on takes some 10 GB.
REQUIREMENTS = ["aiohttp", "numpy", "pandas", "pillow", "psutil", "pybase64", "pyyaml", "pyzmq", "regex", "tqdm",
                "transformers==5.24.0", "urllib3"]
RUNNER = pathlib.Path(__file__).with_name("vllm_bench.py")

pytestmark = [pytest.mark.slow,
              pytest.mark.client("vllm", "`bench serve`: completions, embeddings, rerank", VERSION)]


@pytest.fixture(scope="module")
def server():
    with client_models_server() as server:
        yield server


@pytest.fixture
def bench(server, tmp_path):
    """Runs the benchmark with these flags; returns the result that it saves."""
    sources = suite_packages.unpacked("vllm", f"vllm-{VERSION}.tar.gz") / f"vllm-{VERSION}"
    python = suite_packages.python("vllm", REQUIREMENTS)
    tokenizer = byte_tokenizer.write(tmp_path / "tokenizer")

    def run(*flags):
        saved = tmp_path / "result.json"
        done = subprocess.run(
            [python, RUNNER, sources, "--base-url", server.url, "--tokenizer", tokenizer, "--save-result",
             "--save-detailed", "--result-filename", saved, "--ready-check-timeout-sec", "60", "--disable-tqdm",
             *flags],
            capture_output=True, text=True, timeout=300, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(saved.read_text())
    return run


def test_completions(bench, server, tmp_path):
    """The texts are those that a call without a stream gives, and so are the tokens counted."""
    prompts = [f"def function_{number}(value):\n    return " for number in range(8)]
    data = tmp_path / "prompts.jsonl"
    data.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    result = bench("--model", "code-lm", "--dataset-name", "custom", "--dataset-path", data, "--skip-chat-template",
                   "--disable-shuffle", "--custom-output-len", "12", "--num-prompts", "8", "--temperature", "0")
    answers = [server.post_json("/v1/completions", {"model": "code-lm", "prompt": prompt, "max_tokens": 12,
                                                    "temperature": 0})[1] for prompt in prompts]
    assert result["completed"] == 8 and result["failed"] == 0
    assert result["generated_texts"] == [answer["choices"][0]["text"] for answer in answers]
    assert result["output_lens"] == [answer["usage"]["completion_tokens"] for answer in answers]
    assert result["input_lens"] == [answer["usage"]["prompt_tokens"] for answer in answers]


def test_random_prompts_of_a_length(bench):
    """It asks the server to go on behind an end, and lets it say how long its random prompts are."""
    result = bench("--model", "code-lm", "--dataset-name", "random", "--random-input-len", "64",
                   "--random-output-len", "9", "--num-prompts", "6", "--max-concurrency", "3")
    assert result["completed"] == 6 and result["failed"] == 0
    assert result["output_lens"] == [9] * 6
    assert len(result["ttfts"]) == 6 and all(0 < ttft <= latency for ttft, latency
                                             in zip(result["ttfts"], result["latencies"], strict=True))


@pytest.mark.parametrize("flags", [
    ["--backend", "openai-embeddings", "--endpoint", "/v1/embeddings", "--model", "embedder",
     "--dataset-name", "random"],
    ["--backend", "vllm-rerank", "--endpoint", "/v1/rerank", "--model", "reranker", "--dataset-name", "random-rerank",
     "--random-batch-size", "3"]], ids=["embeddings", "rerank"])
def test_models_that_pool(bench, server, flags):
    result = bench(*flags, "--random-input-len", "24", "--num-prompts", "6")
    assert set(result["errors"]) == {""}
    assert result["completed"] == (2 if "vllm-rerank" in flags else 6)
    assert result["total_input_tokens"] > 0
