"""The number of pods: who owns it, and how it follows the work that waits."""

import json

from chart import Release
from load import embeddings, seconds_of_a_text
from node import ROOT, wait_until
from traffic import Traffic

MANIFESTS = ROOT / "deploy/kubernetes"
HPA = {"kind": "hpa", "minReplicas": 1, "maxReplicas": 2, "queuedWorkSeconds": 0.5}


def test_an_autoscaler_takes_the_count_over(release):
    """`helm upgrade` to an autoscaler keeps the pods that run; so do upgrades after it."""
    release.install({"replicas": 1}, wait=False)
    release.kubectl("scale", "deployment/longview", "--replicas=3")
    for label in ("1", "2"):
        release.install({"autoscaling": {"kind": "hpa", "minReplicas": 1},
                         "podAnnotations": {"example.com/round": label}}, wait=False)
        assert release.replicas() == 3
    release.kubectl("scale", "deployment/longview", "--replicas=0")


def test_an_overlay_leaves_the_count(node):
    """Plain `kubectl apply -k`: the overlay with the autoscaler over the base, the base over itself and
    the monitoring of pods leave the pods that run."""
    node.kubectl("apply", "-k", MANIFESTS / "namespace")
    release = Release(node, "longview")
    try:
        node.kubectl("apply", "-k", MANIFESTS / "base")
        assert release.replicas() == 1
        release.kubectl("scale", "deployment/longview", "--replicas=3")
        for overlay in ("base", "overlays/cpu", "overlays/cpu", "base"):
            node.kubectl("apply", "-k", MANIFESTS / overlay)
            assert release.replicas() == 3, overlay
        assert release.get("hpa", "longview")["spec"]["minReplicas"] == 2
    finally:
        node.kubectl("delete", "-k", MANIFESTS / "overlays/cpu", "--timeout=200s", check=False)
        node.kubectl("delete", "namespace", "longview", "--timeout=200s", check=False)


def test_pods_follow_the_work_that_waits(release, journal):
    """longview_queued_work_seconds of real servers, read from their /metrics by custom_metrics.py,
    takes the HorizontalPodAutoscaler of the chart from one pod to two while more long texts arrive than
    one pod can do, and back after it. Clients repeat refusals that say when; no call fails."""
    release.install({"autoscaling": HPA, "replicas": 1, "resources": {"limits": {"cpu": "500m"}}})
    # Five minutes of caution are the chart's; a test has less.
    release.kubectl("patch", "hpa", "longview", "--type=merge", "-p", json.dumps(
        {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 10, "policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 5}]}}}}))
    release.wait_ready(1)
    light = Traffic(release, journal, "grpc=1", "rest=0.5")
    pod, = release.ready_pods()
    each = seconds_of_a_text(embeddings(release.poster(pod)))
    # More than one pod can do, and less than two.
    heavy = Traffic(release, journal, f"embed={0.65 * each:.3f}")
    with light:
        light.flows(15)
        light.mark("long texts")
        with heavy:
            wait_until(lambda: release.replicas() == 2, 300, "the autoscaler asks for a second pod", 2)
            light.mark("2 pods wanted")
            release.wait_ready(2)
            light.mark("2 pods ready")
            events = release.kubectl("describe", "hpa", "longview")
            assert "longview_queued_work_seconds above target" in events
            heavy.flows(20)
        light.mark("end of long texts")
        wait_until(lambda: release.replicas() == 1, 600, "the autoscaler takes a pod away", pause=2)
        light.mark("1 pod wanted")
        release.wait_ready(1)
        light.flows(15)
    print(light.summary())
    assert not light.failures(), light.failures()[:5]
    assert {call["kind"] for call in light.calls} == {"grpc", "rest", "embed"}
    assert release.restarts() == 0
