"""Pods come and go under open-loop calls of every kind, and no call fails or answers otherwise."""

import collections
import subprocess
import threading
import time

import pytest

from node import PARTS, wait_until
from traffic import STEADY, Traffic


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_updates_and_rollbacks(release, journal, rounds):
    """An update to another image and `helm rollback`, in turn, under six calls a second by gRPC and
    REST, streams, and documents of half a minute. Only documents may be told to come back."""
    patient = {"server": {"maxQueueSeconds": 600}}
    release.install(patient)
    with Traffic(release, journal, *STEADY, "document=40") as traffic:
        traffic.flows(20)
        for i in range(rounds):
            before = {pod["metadata"]["name"] for pod in release.pods()}
            if i % 2 == 0:
                traffic.mark("update")
                release.install(patient | {"image": {"tag": "0.1.1"}})
            else:
                traffic.mark("rollback")
                release.helm("rollback", "longview", "--wait", "--timeout=600s")
            traffic.mark("ready")
            now = release.ready_pods()
            assert len(now) == 2 and before.isdisjoint(pod["metadata"]["name"] for pod in now)
            wanted = "longview:0.1.1" if i % 2 == 0 else "longview:0.1.0"
            assert {pod["spec"]["containers"][0]["image"] for pod in now} == {wanted}
            print(f"round {i + 1}: {len(traffic.read())} calls so far")
        # The last pods to leave still drain.
        traffic.flows(20)
        assert release.restarts() == 0
    print(traffic.summary(), *traffic.repeated(), sep="\n")
    assert not traffic.failures(), traffic.failures()[:5]
    counts = collections.Counter(call["kind"] for call in traffic.calls)
    assert set(counts) == {"grpc", "grpc-stream", "rest", "rest-stream", "document"}
    asked = [call["at"] for call in traffic.calls if call["kind"] in ("grpc", "rest")]
    assert len(asked) > 5 * (max(asked) - min(asked))
    # Documents that outlived the pod they ran in were told so, and when to come back.
    assert {call["kind"] for call in traffic.calls if call["repeated"]} <= {"document"}
    assert all("UNAVAILABLE" in told for told in traffic.repeated())


def test_a_node_is_drained(release, journal):
    """`kubectl drain` empties the node one pod at a time: the budget refuses the second eviction
    until the first pod's successor is ready."""
    release.install()
    release.wait_ready(2)
    before = {pod["metadata"]["name"] for pod in release.pods()}
    fewest, stop = [2], threading.Event()

    def watch():
        while not stop.wait(1):
            fewest[0] = min(fewest[0], len(release.ready_pods()))

    watcher = threading.Thread(target=watch)
    with Traffic(release, journal) as traffic:
        watcher.start()
        try:
            drain = subprocess.Popen(
                release.node.inside(PARTS / "bin/kubectl", "drain", "node1", "--ignore-daemonsets",
                                    "--pod-selector=app.kubernetes.io/name=longview",
                                    "--timeout=600s", mounts=False),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=release.node.environment())
            # The successors have no other node to go to.
            wait_until(lambda: release.get("pdb", "longview")["status"]["disruptionsAllowed"] == 0,
                       120, "one pod is evicted")
            time.sleep(8)
            still = {pod["metadata"]["name"] for pod in release.ready_pods()}
            release.node.kubectl("uncordon", "node1")
            said, _ = drain.communicate(timeout=700)
        finally:
            stop.set()
            watcher.join()
            release.node.kubectl("uncordon", "node1")
        release.wait_ready(2)
        traffic.flows(10)
    assert drain.returncode == 0, said
    assert len(still & before) == 1, "the budget lets one pod go at a time"
    assert "violate the pod's disruption budget" in said, said
    assert before.isdisjoint(pod["metadata"]["name"] for pod in release.pods())
    assert fewest[0] == 1
    print(traffic.summary())
    assert not traffic.failures(), traffic.failures()[:5]


def test_a_pod_is_killed(release, journal):
    """Servers end by SIGKILL under load: clients that repeat what found no server see no failure, and
    nobody sees a wrong or a shortened answer as a whole one."""
    release.install()
    release.wait_ready(2)
    rates = ("grpc=0.5", "rest=0.5", "rest-stream=3", "--again")
    with Traffic(release, journal, *rates) as traffic:
        for _ in range(3):
            victim = release.ready_pods()[0]["metadata"]["name"]
            release.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
            traffic.flows(3)
            release.wait_ready(2)
    print(traffic.summary())
    assert not traffic.failures("grpc", "rest"), traffic.failures("grpc", "rest")[:5]
    # A stream under way on the victim breaks off, and its client is told so.
    assert len(traffic.failures("rest-stream")) <= 3 * 4
    assert not [call for call in traffic.calls if "another answer" in (call["error"] or "")]
