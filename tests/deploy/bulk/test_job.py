"""The Job's pods keep the rules of all pods, and its arguments are the command's own."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from longview_bulk.arguments import parse_command  # noqa: E402
from manifests import read  # noqa: E402
from policy import container_rules  # noqa: E402
from server_process import ROOT  # noqa: E402


def test_the_job(monkeypatch):
    job, = read(ROOT / "deploy/bulk/kubernetes/job.yaml")
    spec = job["spec"]
    pod = spec["template"]["spec"]
    container, = pod["containers"]
    monkeypatch.setenv("JOB_COMPLETION_INDEX", str(spec["completions"] - 1))
    command = parse_command(container["args"])
    assert spec["completionMode"] == "Indexed" and command.in_job
    assert command.of == spec["completions"] and command.index == spec["completions"] - 1
    assert not list(container_rules(container))
    security = pod["securityContext"]
    assert security["runAsNonRoot"] and security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["restartPolicy"] == "Never" and spec["backoffLimitPerIndex"] > 0
    # Parts are on the volume: nothing is written elsewhere.
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(pathlib.Path(path).parent) for path in (command.output, command.question.input)} == mounts
