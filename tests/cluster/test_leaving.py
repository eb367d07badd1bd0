"""A pod that leaves while it works on a document longer than its drain."""

import concurrent.futures

import pytest

from load import embeddings, texts_for
from node import wait_until
from rolling import Refusal

SECONDS = 60


class Leaving:
    """A pod that was deleted while it works on a document; `document` is the future of its answer."""

    def __init__(self, release, executor):
        self.release, (self.pod, self.other) = release, release.ready_pods()
        embed = embeddings(release.poster(self.pod))
        self.count = texts_for(SECONDS, embed)
        self.document = executor.submit(embed, self.count)
        wait_until(lambda: self._running() or self.document.done(), 120, "the document runs")
        assert not self.document.done()
        self.name = self.pod["metadata"]["name"]
        release.kubectl("delete", "pod", self.name, "--wait=false")

    def _running(self):
        text = self.release.node.run("curl", "-s", f"http://{self.pod['status']['podIP']}:8080/metrics")
        return any(line.startswith("longview_running_requests") and not line.endswith(" 0")
                   for line in text.splitlines())

    def conditions(self):
        """The EndpointSlice's conditions of the pod, if it is still there."""
        slices = self.release.get("endpointslices", "-l", "kubernetes.io/service-name=longview")
        return [endpoint["conditions"] for part in slices["items"]
                for endpoint in part["endpoints"] or []
                if endpoint["targetRef"]["name"] == self.name]

    def embed_elsewhere(self):
        return embeddings(self.release.poster(self.other))(self.count)


@pytest.fixture
def executor():
    with concurrent.futures.ThreadPoolExecutor(1) as made:
        yield made


def test_a_document_outlives_the_drain(release, executor):
    """Readiness is false at once, liveness stays true, short calls are answered during the drain, and
    the document is finished after it."""
    release.install({"server": {"drainSeconds": 10, "shutdownSeconds": 600, "maxQueueSeconds": 600}})
    leaving = Leaving(release, executor)
    first = leaving.release.status(leaving.pod, "/readyz"), release.status(leaving.pod, "/livez")
    assert first == (503, 200)
    answer = release.post("/v1/classify", {"model": "code-language", "text": "int main() {}"}, leaving.pod)
    assert "labels" in answer
    wait_until(lambda: all(not one["ready"] for one in leaving.conditions()), 60,
               "the Service has no call for the pod")
    # After the drain a new connection finds nobody.
    wait_until(lambda: release.status(leaving.pod, "/livez") == 0, 120, "the drain ends")
    assert not leaving.document.done(), "the document is to outlive the drain"
    assert leaving.document.result(1200) == leaving.embed_elsewhere()
    release.wait_ready(2)


def test_a_document_outlives_all_patience(release, executor):
    """What runs after --shutdown_seconds ends with an error that says when to come back, and another
    pod answers then."""
    release.install({"server": {"drainSeconds": 2, "shutdownSeconds": 2, "maxQueueSeconds": 600}})
    leaving = Leaving(release, executor)
    with pytest.raises(Refusal) as refusal:
        leaving.document.result(600)
    assert refusal.value.args[0] == 503 and refusal.value.retry_after, refusal.value
    assert "UNAVAILABLE" in refusal.value.args[1]
    assert len(leaving.embed_elsewhere()) == leaving.count
    release.wait_ready(2)
