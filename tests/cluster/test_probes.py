"""What the probes say, and what Kubernetes makes of it, while models load and under a full queue.
test_leaving.py has them while a pod leaves."""

import os
import shutil
import time

from chart import is_ready, ready_condition
from load import embeddings, seconds_of_a_text
from node import ROOT, wait_until
from rolling import Refusal
from traffic import Traffic

MODELS = 30


def probes(release, pod):
    """Statuses of liveness and readiness; 0 where nobody answers."""
    return release.status(pod, "/livez"), release.status(pod, "/readyz")


def test_while_models_load(release, tmp_path):
    """Alive, not ready, without calls and not restarted until the last of many models is loaded."""
    first = tmp_path / "models/model-0"
    shutil.copytree(ROOT / "models/zoo/code-language", first)
    for i in range(1, MODELS):
        folder = first.with_name(f"model-{i}")
        folder.mkdir()
        for file in first.iterdir():
            os.link(file, folder / file.name)
    release.volume(tmp_path / "models")
    release.install({"replicas": 1, "models": {"source": "volume", "volume": {"claimName": "models"}},
                     "resources": {"limits": {"cpu": "300m"}}}, wait=False)
    seen = []

    def loaded():
        pods = [pod for pod in release.pods() if "podIP" in pod["status"]]
        if pods:
            seen.append((is_ready(pods[0]), *probes(release, pods[0])))
        return seen and seen[-1][0]

    wait_until(loaded, 1500, "the models are loaded", pause=1)
    loading = [one for one in seen if one == (False, 200, 503)]
    print(f"{len(loading)} times alive and not ready, of {len(seen)}")
    assert len(loading) >= 3
    assert {one for one in seen if one[1]} <= {(False, 200, 503), (False, 200, 200), (True, 200, 200)}
    assert release.restarts() == 0
    answer = release.curl("/v1/models")
    assert answer.count('"READY"') == MODELS


def test_under_a_full_queue(release, journal):
    """Calls are refused for minutes of work that wait; the pod stays alive, ready and the same one."""
    release.install({"replicas": 1, "server": {"maxQueueSeconds": 5},
                     "resources": {"limits": {"cpu": "300m"}}})
    pod, = release.ready_pods()
    before, embed = ready_condition(pod), embeddings(release.poster(pod))
    refused, seen, end = 0, set(), time.monotonic() + 60
    with Traffic(release, journal, f"embed={0.4 * seconds_of_a_text(embed):.3f}") as traffic:
        # Six periods of the liveness probe, and as many more as it takes.
        while refused < 5 or time.monotonic() < end:
            seen.add(probes(release, pod))
            try:
                embed()
            except Refusal as refusal:
                assert refusal.args[0] == 429 and refusal.retry_after
                refused += 1
            assert len(traffic.read()) < 1000, "the queue is never full"
        now, = release.pods()
    print(traffic.summary(), f"{refused} more refused")
    assert seen == {(200, 200)}
    assert release.restarts() == 0
    assert ready_condition(now) == before and now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert not traffic.failures() and traffic.repeated()
