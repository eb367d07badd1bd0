"""The chart's memory limit, and documents of every length at once."""

import concurrent.futures
import random

import pytest
import yaml

from chart import CHART
from node import pod_cgroups
from rolling import Refusal

MEBIBYTE = 2**20


def lengths(most):
    """From 1 to the most: powers of two and their neighbours."""
    powers = {2**i + j for i in range(18) for j in (-1, 0, 1)}
    return sorted({n for n in powers if 1 <= n < most} | {most - 1, most})


def requests():
    """(path, body) of texts by their tokens: vectors, classes, continuations of prompts."""
    draw = random.Random(1)
    ids = [draw.randrange(8, 250) for _ in range(20_000)]
    text = "".join(draw.choice("abcdefg (){};\n") for _ in range(140_000))
    made = [("/v1/embeddings", {"model": "code-search", "input": [ids[:n]]}) for n in lengths(16384)]
    made += [("/v2/models/code-language/infer", {"inputs": [{
        "name": "input_ids", "datatype": "INT64", "shape": [1, n], "data": ids[:n]}]})
        for n in lengths(4096)]
    made *= 3
    # A byte is a token of the language model; the longest prompt takes minutes of one core.
    made += [("/v1/completions", {"model": "code-lm", "prompt": text[-n:], "max_tokens": 1})
             for n in [*(2**i for i in range(15)), 131_070]]
    draw.shuffle(made)
    return made


def too_long():
    return [("/v1/embeddings", {"model": "code-search", "input": [[9] * 16385]}),
            ("/v2/models/code-language/infer", {"inputs": [{
                "name": "input_ids", "datatype": "INT64", "shape": [1, 4097], "data": [9] * 4097}]}),
            ("/v1/completions", {"model": "code-lm", "prompt": "a" * 131_073, "max_tokens": 1})]


def number(folder, *names):
    """The first of these files that the kernel's version of control groups has."""
    path = next(folder / name for name in names if (folder / name).exists())
    return int(path.read_text())


def kills(group):
    """Processes of a control group, and of those in it, that the kernel has killed for want of memory."""
    files = [path for name in ("memory.events", "memory.oom_control") for path in group.rglob(name)]
    assert files
    lines = [line.split() for path in files for line in path.read_text().splitlines()]
    return sum(int(count) for name, count in lines if name == "oom_kill")


def test_documents_of_every_length(release):
    """32 at a time: all are answered, or refused in words; the limit is not reached and nobody is killed."""
    resources = yaml.safe_load((CHART / "values.yaml").read_text())["resources"]
    release.install({"replicas": 1, "resources": resources,
                     "server": {"extraFlags": ["--default_timeout_seconds=0"]}})
    pod, = release.ready_pods()
    made = requests()
    with concurrent.futures.ThreadPoolExecutor(32) as executor:
        answers = list(executor.map(lambda request: release.ask(*request, pod), made))
    told = [refusal for _, refusals in answers for refusal in refusals]
    assert {refusal.args[0] for refusal in told} <= {429}, told
    for request in too_long():
        with pytest.raises(Refusal) as refused:
            release.ask(*request, pod)
        status, said, _ = refused.value.args
        assert status == 400 and "tokens" in said and "more than" in said, said

    group = next(path for path in pod_cgroups()
                 if path.name.endswith(pod["metadata"]["uid"])
                 and any((path / name).exists() for name in ("memory.peak", "memory.max_usage_in_bytes")))
    peak = number(group, "memory.peak", "memory.max_usage_in_bytes")
    limit = number(group, "memory.max", "memory.limit_in_bytes")
    print(f"{len(made)} documents, {len(told)} refused for a while; the pod's memory: peak "
          f"{peak / MEBIBYTE:.0f} MiB of {limit / MEBIBYTE:.0f} MiB")
    assert resources["limits"]["memory"] == f"{limit // MEBIBYTE // 1024}Gi"
    assert peak < limit
    assert kills(group) == 0 and release.restarts() == 0
    assert release.pods()[0]["metadata"]["uid"] == pod["metadata"]["uid"]
