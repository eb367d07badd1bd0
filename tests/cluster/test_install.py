"""The chart as a user installs it, and what it answers."""

import json

from node import ROOT

SOURCE = ROOT / "kernels/span/plan.h"


def test_the_chart_installs_and_answers(release):
    """`helm install --wait` with two pods, the README's request through the Service, `helm test
    --logs`, NOTES, and the objects that a careful administrator asks for."""
    seconds = release.install()
    print(f"installed in {seconds:.0f} s")
    assert len(release.ready_pods()) == 2
    answer = json.loads(release.curl("/v1/classify?model=code-language&top_k=2", "--data-binary",
                                     f"@{SOURCE}", "-H", "Content-Type: text/plain"))
    assert answer["labels"][0]["name"] == "C++"

    tested = release.helm("test", "longview", "--logs", "--timeout=300s")
    assert "Phase:          Succeeded" in tested
    assert "code-language" in tested, "the log of the test pod is missing"

    budget = release.get("pdb", "longview")
    assert budget["status"]["currentHealthy"] == 2
    assert budget["status"]["disruptionsAllowed"] == 1
    policy = release.get("networkpolicy", "longview")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and not policy.get("egress")
    pod = release.pods()[0]
    assert pod["status"]["qosClass"] == "Burstable"
    # The root file system is read-only in fact, not only in the manifest.
    said = release.kubectl("exec", pod["metadata"]["name"], "--", "sh", "-c",
                           "echo x >/opt/longview/x || id -u", check=False)
    assert "Read-only file system" in said and "10001" in said
