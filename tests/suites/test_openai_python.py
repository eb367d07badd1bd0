"""The tests that openai's Python client brings for the calls that are served, pointed at the server."""

import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import openai_sources
from server_process import ROOT, Server

ZOO = ROOT / "models/zoo"
FILES = [f"tests/api_resources/test_{name}.py" for name in ("completions", "embeddings", "models")]
# Calls that are not served, and what the client's tests cannot read of any server's answer.
LEFT_OUT = {
    r"Models::test_(method|raw_response|streaming_response)_delete": "models are unloaded by their repository, "
                                                                     "not deleted",
    r"Completions::test_method_create_with_all_params": "a suffix and a best_of of 0 are not served, stream_options "
                                                        "go with a stream, and logit_bias has ids, not words",
    r"Embeddings::test_\w+_create\[(strict|aiohttp)\]": "the client asks for base64 by itself, and checks "
                                                       "the answer before it decodes that",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names():
    """The models that the tests ask for: by completions, by embeddings and by the list."""
    folder = openai_sources.sources()
    asked = {}
    for path in FILES:
        text = (folder / path).read_text()
        asked[path] = set(re.findall(r'model="([^"]+)"', text))
        asked[path] |= set(re.findall(r'models\.(?:with_\w+\.)?retrieve\(\s*"([^"]+)"', text))
    return asked


def results(path):
    """By test: whether it passed; those that the suite itself skips are left out."""
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("skipped") is None:
            bad = case.find("failure") is not None or case.find("error") is not None
            found[f"{case.get('classname').rpartition('.')[2]}::{case.get('name')}"] = not bad
    return found


def test_its_own_tests(names, tmp_path):
    folder, python = openai_sources.sources(), openai_sources.python()
    completions, embeddings, models = (names[path] for path in FILES)
    served = dict.fromkeys(completions, "code-lm")
    served.update(dict.fromkeys(embeddings | models, "code-language"))
    with Server([",".join(f"{name}={ZOO / model}" for name, model in served.items())]) as server:
        report = tmp_path / "report.xml"
        ran = subprocess.run([python, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider",
                              "--junitxml", report, *FILES],
                             cwd=folder, capture_output=True, text=True, timeout=600,
                             env={**os.environ, "TEST_API_BASE_URL": f"{server.url}/v1"})
        assert report.exists(), ran.stdout + ran.stderr
    found = results(report)
    passed = {test for test, good in found.items() if good}
    known = {test for test in found if any(re.search(pattern, test) for pattern in LEFT_OUT)}
    print(f"openai {openai_sources.VERSION}: {len(passed)} of {len(found)} passed, "
          f"{len(known - passed)} left out")
    assert len(found) >= 90
    assert not passed & known, "these pass and are in LEFT_OUT"
    failed = sorted(set(found) - passed - known)
    assert not failed, ran.stdout[-4000:]
