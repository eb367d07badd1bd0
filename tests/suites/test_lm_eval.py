"""lm-eval's `local-completions` against `code-lm`: choices, the likelihood of whole texts, generation.

The tasks are made here, since data sets of a hub cannot be had; what lm-eval reports is what direct calls say.
"""

import json
import math
import os
import subprocess

import pytest

import byte_tokenizer
import suite_packages
from server_process import ZOO, Server

VERSION = "0.4.13"
REQUIREMENTS = [f"lm-eval[api]=={VERSION}", "transformers==5.24.0"]

pytestmark = [pytest.mark.slow,
              pytest.mark.client("lm-eval", "`local-completions`: choices, whole texts, generation", VERSION)]

# No context ends with a space: lm-eval counts such a space as the continuation's.
CHOICES = [
    {"context": "for (int i = 0; i < n; ++", "choices": ["i) {", "zq) {", "#!"], "answer": 0},
    {"context": "import os\nimport", "choices": ["\n\n\n", " sys\n", "}};\n"], "answer": 1},
    {"context": "#include <vector>\n#include", "choices": ["def ", "()", " <string>\n"], "answer": 2},
    {"context": "", "choices": ["#include ", "\x01\x02\x03", "ÄÖÜ"], "answer": 0},
]
TEXTS = [{"text": "def add(a, b):\n    return a + b\n"}, {"text": "int main() { return 0; }  // Größe\n"}]
PROMPTS = [{"prompt": "def f(x):\n    return"}, {"prompt": "int main() {\n"}]
COMMON = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
target_delimiter: ""
"""
TASKS = {
    "choices": (CHOICES, """\
output_type: multiple_choice
doc_to_text: "{{context}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: acc}]
"""),
    "rolling": (TEXTS, """\
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: bits_per_byte}]
"""),
    "generated": (PROMPTS, """\
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: ""
generation_kwargs: {until: ["\\n\\n"], max_gen_toks: 24, do_sample: false}
metric_list: [{metric: exact_match}]
"""),
}


@pytest.fixture(scope="module")
def server():
    with Server([ZOO / "code-lm"]) as server:
        yield server


@pytest.fixture(scope="module", params=[1, 8], ids=["one_by_one", "in_batches"])
def reported(request, server, tmp_path_factory):
    """{task: (its metrics, its samples)} of one run of the command."""
    python = suite_packages.python("lm-eval", REQUIREMENTS)
    folder = tmp_path_factory.mktemp("lm-eval")
    tokenizer = byte_tokenizer.write(folder / "tokenizer")
    tasks = folder / "tasks"
    tasks.mkdir()
    for name, (documents, task) in TASKS.items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(document) + "\n" for document in documents))
        (tasks / f"{name}.yaml").write_text(COMMON.format(name=name, data=data) + task)
    done = subprocess.run(
        [python.with_name("lm-eval"), "run", "--model", "local-completions", "--model_args",
         f"model=code-lm,base_url={server.url}/v1/completions,tokenizer={tokenizer},max_length=4096",
         "--batch_size", str(request.param), "--include_path", tasks, "--tasks", ",".join(TASKS), "--log_samples",
         "--output_path", folder / "out"],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr[-4000:]
    results, = (folder / "out").rglob("results_*.json")
    metrics = json.loads(results.read_text())["results"]
    answer = {}
    for name in TASKS:
        samples, = (folder / "out").rglob(f"samples_{name}_*.jsonl")
        read = [json.loads(line) for line in samples.read_text().splitlines()]
        answer[name] = metrics[name], sorted(read, key=lambda sample: sample["doc_id"])
    return answer


def scores(server, context, continuation):
    """(log-likelihood of the continuation, whether it is what the model writes itself)."""
    context = list(context.encode()) or [256]
    ids = context + list(continuation.encode())
    status, answer = server.post_json("/v1/completions", {"model": "code-lm", "prompt": ids, "max_tokens": 0,
                                                          "echo": True, "logprobs": 1})
    assert status == 200, answer
    said = answer["choices"][0]["logprobs"]
    own = list(zip(said["token_logprobs"], said["top_logprobs"], strict=True))[len(context):]
    return sum(score for score, _ in own), all(score == max(top.values()) for score, top in own)


def test_choices(reported, server):
    metrics, samples = reported["choices"]
    right = 0
    for document, sample in zip(CHOICES, samples, strict=True):
        wanted = [scores(server, document["context"], choice) for choice in document["choices"]]
        for (likelihood, greedy), (said, said_greedy) in zip(wanted, sample["filtered_resps"], strict=True):
            assert math.isclose(float(said), likelihood, abs_tol=1e-4)
            assert str(said_greedy) == str(greedy)
        best = max(range(len(wanted)), key=lambda index: wanted[index][0])
        assert sample["acc"] == (best == document["answer"])
        right += best == document["answer"]
    assert metrics["acc,none"] == right / len(CHOICES)
    assert right >= 3, "the model knows such sources"


def test_rolling_likelihood(reported, server):
    metrics, samples = reported["rolling"]
    likelihoods = [scores(server, "", document["text"])[0] for document in TEXTS]
    for sample, likelihood in zip(samples, likelihoods, strict=True):
        assert math.isclose(float(sample["filtered_resps"][0]), likelihood, abs_tol=1e-4)
    size = sum(len(document["text"].encode()) for document in TEXTS)
    assert math.isclose(metrics["bits_per_byte,none"], -sum(likelihoods) / size / math.log(2), rel_tol=1e-5)


def test_generation(reported, server):
    _, samples = reported["generated"]
    for document, sample in zip(PROMPTS, samples, strict=True):
        status, answer = server.post_json("/v1/completions", {
            "model": "code-lm", "prompt": list(document["prompt"].encode()), "max_tokens": 24, "temperature": 0,
            "stop": ["\n\n"]})
        assert status == 200, answer
        assert sample["filtered_resps"][0] == answer["choices"][0]["text"]
