"""Objects of other projects' kinds, accepted by a real API server that knows the kinds."""

import pytest
import yaml

from node import DEPS, ROOT

SCHEMAS = DEPS / "schemas"
MANIFESTS = ROOT / "deploy/kubernetes"


@pytest.fixture(scope="module")
def kinds(node):
    """kinds(PROJECT): the definitions that tests/support/install_deploy_tools.sh has fetched."""
    def install(project):
        folder = SCHEMAS / project
        if not folder.exists():
            pytest.skip(f"no schemas of {project}: tests/support/install_deploy_tools.sh")
        files = [path for path in folder.glob("*.yaml") if path.name != "kustomization.yaml"]
        node.kubectl("apply", "--server-side", *(f"--filename={path}" for path in files))
        node.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
    return install


def documents(path, group):
    """The objects of a file whose apiVersion begins with `group`."""
    return [one for one in yaml.safe_load_all(path.read_text())
            if one and one["apiVersion"].startswith(group)]


def test_kserve_takes_the_runtime_and_its_services(node, kinds):
    kinds("kserve")
    said = node.kubectl("apply", "--dry-run=server", "-k", MANIFESTS / "overlays/kserve")
    assert said.count("created (server dry run)") == 4
    runtime = documents(MANIFESTS / "overlays/kserve/runtime.yaml", "serving")[0]
    runtime["spec"]["containers"] = "one"
    with pytest.raises(AssertionError, match="spec.containers"):
        node.apply(runtime)


@pytest.mark.parametrize("project,file,group", [
    ("gateway-api-inference-extension", "samples/inferencepool.yaml", "inference."),
    ("keda", "samples/keda-scaledobject.yaml", "keda.sh"),
    ("prometheus-operator", "overlays/monitoring/podmonitor.yaml", "monitoring."),
    ("prometheus-operator", "overlays/monitoring/prometheusrule.yaml", "monitoring."),
])
def test_other_operators_take_their_objects(node, kinds, project, file, group):
    kinds(project)
    found = documents(MANIFESTS / file, group)
    assert found
    for one in found:
        one["metadata"].pop("namespace", None)
    said = node.apply(*found)
    assert said.count("created") + said.count("configured") + said.count("unchanged") == len(found)


@pytest.mark.parametrize("overlay", ["base", "overlays/cpu", "overlays/gpu", "overlays/secured"])
def test_the_api_server_takes_the_kustomizations(node, overlay):
    """Strictly: a field that it does not know is an error."""
    node.kubectl("apply", "-k", MANIFESTS / "namespace")
    said = node.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", MANIFESTS / overlay)
    assert "deployment.apps/longview created (server dry run)" in said
    assert "networkpolicy.networking.k8s.io/longview created (server dry run)" in said
