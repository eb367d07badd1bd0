"""The number of pods: who owns it, and how it follows the work that waits."""

import json

from node import wait_until
from traffic import Traffic

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


def test_pods_follow_the_work_that_waits(release, tmp_path):
    """longview_queued_work_seconds of real servers, read from their /metrics by custom_metrics.py,
    takes the HorizontalPodAutoscaler of the chart from one pod to two under load and back after it."""
    release.install({"autoscaling": HPA, "replicas": 1})
    # Five minutes of caution are the chart's; a test has less.
    release.kubectl("patch", "hpa", "longview", "--type=merge", "-p", json.dumps(
        {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 10, "policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 5}]}}}}))
    assert release.replicas() == 1
    with Traffic(release, tmp_path / "calls", "grpc=0.5", "grpc-stream=0.1"):
        wait_until(lambda: release.replicas() == 2, 240, "the autoscaler asks for a second pod", 2)
        release.wait_ready(2)
        events = release.kubectl("describe", "hpa", "longview")
        assert "longview_queued_work_seconds above target" in events
    wait_until(lambda: release.replicas() == 1, 400, "the autoscaler takes a pod away", pause=5)
    release.wait_ready(1)
