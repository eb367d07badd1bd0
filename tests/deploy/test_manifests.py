"""Kubernetes manifests, the Helm chart and compose: schemas, our own rules, one set of facts.

helm, kustomize and the resource definitions of other projects come from
tests/support/install_deploy_tools.sh; without them their tests are skipped and say so.
"""

import copy
import json
import os
import pathlib
import subprocess

import pytest
import yaml

import kubernetes_validate
from manifests import (CHART, KUBERNETES, definitions, flags, helm_template, is_foreign,
                       is_kubernetes_file, load, merged, pods, read, server_config)
from policy import violations
from server_process import ROOT, SERVER

VERSIONS = ("1.28", "1.31", "1.34")
OVERLAYS = ("cpu", "gpu", "monitoring", "secured")
VALUES = sorted((CHART / "ci").glob("*.yaml"))
BULK = ROOT / "deploy/bulk/kubernetes"
FILES = sorted(path for folder in (KUBERNETES, BULK) for path in folder.rglob("*.yaml") if is_kubernetes_file(path))
SCHEMAS = pathlib.Path(os.environ.get("DEPS_DIR", ROOT / ".deps")) / "schemas"


def validate(documents, versions=VERSIONS):
    checked = 0
    for document in documents:
        for version in () if is_foreign(document) else versions:
            kubernetes_validate.validate(document, version, strict=True)
            checked += 1
    return checked


def understood(documents):
    """The server takes the arguments of every pod; this machine may have no device."""
    for _, pod in pods(documents):
        server_config(SERVER, [argument for argument in pod["containers"][0]["args"]
                               if not argument.startswith("--device=cuda")])


@pytest.fixture(scope="module")
def base():
    return [document for path in sorted((KUBERNETES / "base").glob("*.yaml"))
            if is_kubernetes_file(path) for document in read(path)]


@pytest.fixture(scope="module")
def kustomize(tool):
    def build(overlay):
        done = subprocess.run([tool("kustomize"), "build", KUBERNETES / "overlays" / overlay],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return load(done.stdout)
    return build


def test_every_file_is_valid_for_three_versions():
    assert sum(validate(read(path)) for path in FILES) >= 8 * len(VERSIONS)


def test_the_schemas_are_strict(base):
    deployment = next(document for document in base if document["kind"] == "Deployment")
    broken = copy.deepcopy(deployment)
    probe = broken["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    probe["grpc"]["port"] = "grpc"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)
    broken = copy.deepcopy(deployment)
    broken["spec"]["template"]["spec"]["enableServiceLink"] = False
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


def test_the_base_keeps_our_rules(base):
    assert not violations(base)


@pytest.fixture(scope="module")
def secured():
    return [document for path in sorted((KUBERNETES / "overlays/secured").glob("*.yaml"))
            if is_kubernetes_file(path) for document in read(path)]


def test_the_secured_overlay(secured):
    """Probes leave the encrypted ports, and the server knows the flags that make it so."""
    assert not violations(secured)
    (_, pod), = pods(secured)
    container = pod["containers"][0]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/etc/longview/keys", "/etc/longview/tls"}
    given = flags(container)
    for name in ("tls_cert", "tls_key", "api_keys_file"):
        assert str(pathlib.Path(given[name]).parent) in mounts
    config = server_config(SERVER, container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": config["grpc_port"], "http": config["http_port"],
                     "admin": config["admin_port"]}


def break_grace(pod):
    pod["terminationGracePeriodSeconds"] = 30


def break_links(pod):
    del pod["enableServiceLinks"]


def break_root(pod):
    pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = False


def break_probe(pod):
    pod["containers"][0]["livenessProbe"]["grpc"]["service"] = "readiness"


@pytest.mark.parametrize("damage", [break_grace, break_links, break_root, break_probe])
def test_the_rules_see_damage(base, damage):
    documents = copy.deepcopy(base)
    damage(next(pod for _, pod in pods(documents)))
    assert len(violations(documents)) == 1


def test_values_and_base_are_the_same_facts(base):
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    (_, pod), = pods(base)
    container = pod["containers"][0]
    given = flags(container)
    server = values["server"]
    for flag, value in (("grpc_port", "grpcPort"), ("http_port", "httpPort"), ("device", "device"),
                        ("dtype", "dtype"), ("drain_seconds", "drainSeconds"),
                        ("shutdown_seconds", "shutdownSeconds"), ("cache_bytes", "cacheBytes"),
                        ("max_queue_seconds", "maxQueueSeconds"), ("log_level", "logLevel"),
                        ("max_connection_age_seconds", "maxConnectionAgeSeconds")):
        assert given[flag] == str(server[value]), flag
    assert container["resources"] == values["resources"]
    assert container["image"] == f"{values['image']['repository']}:{values['image']['tag']}"
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = subprocess.run([SERVER, "--version"], check=True, capture_output=True, text=True)
    assert version.stdout.split()[1] == chart["appVersion"] == values["image"]["tag"]


def test_the_server_understands_the_flags(base):
    """And means the same by them as the manifest does: ports, and the time that leaving takes."""
    (_, pod), = pods(base)
    container = pod["containers"][0]
    config = server_config(SERVER, container["args"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": config["grpc_port"], "http": config["http_port"]}
    assert config["host"] == "0.0.0.0"
    assert config["allow_model_control"] is False
    grace = config["drain_seconds"] + config["shutdown_seconds"] + 10
    assert pod["terminationGracePeriodSeconds"] == grace


def test_kserve_runtime():
    runtime, = read(KUBERNETES / "overlays/kserve/runtime.yaml")
    container, = runtime["spec"]["containers"]
    assert container["name"] == "kserve-container"
    arguments = [argument.replace("{{.Name}}", "document") for argument in container["args"]]
    config = server_config(SERVER, arguments)
    assert config["models"] == ["document=/mnt/models"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"h2c": config["grpc_port"], "http": config["http_port"]}
    assert config["drain_seconds"] + config["shutdown_seconds"] + 10 <= 30
    for probe, service in (("startupProbe", "readiness"), ("readinessProbe", "readiness"),
                           ("livenessProbe", "liveness")):
        assert container[probe]["grpc"] == {"port": config["grpc_port"], "service": service}
    formats = {entry["name"] for entry in runtime["spec"]["supportedModelFormats"]}
    for name in ("longformer", "detector", "reranker"):
        service, = read(KUBERNETES / f"overlays/kserve/{name}.yaml")
        model = service["spec"]["predictor"]["model"]
        assert model["modelFormat"]["name"] in formats
        assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]
        server_config(SERVER, model.get("args", []))


def test_compose():
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    server = compose["services"]["server"]
    config = server_config(SERVER, server["command"])
    grace = config["drain_seconds"] + config["shutdown_seconds"] + 10
    assert server["stop_grace_period"] == f"{grace}s"
    assert server["read_only"] and server["cap_drop"] == ["ALL"] and server["user"] == "10001:0"
    for name, service in compose["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (ROOT / source).exists(), source
    profiles = {profile for service in compose["services"].values()
                for profile in service.get("profiles", [])}
    assert profiles == {"monitoring", "load"}
    gpu = yaml.safe_load((ROOT / "deploy/docker/compose.gpu.yml").read_text())
    assert set(gpu["services"]) == {"server"}


def test_compose_files_by_their_schema():
    """The checks of `docker compose config`."""
    import jsonschema
    file = SCHEMAS / "compose-go/compose-spec.json"
    if not file.exists():
        pytest.skip(f"{file} is not here: tests/support/install_deploy_tools.sh fetches it")
    check = jsonschema.Draft7Validator(json.loads(file.read_text()))
    for path in (ROOT / "docker-compose.yml", ROOT / "deploy/docker/compose.gpu.yml"):
        check.validate(yaml.safe_load(path.read_text()))
    assert not check.is_valid({"services": {"server": {"image": "x", "readonly": True}}})


def test_values_schema_is_valid_and_refuses():
    import jsonschema
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    check = jsonschema.Draft7Validator(schema)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    check.validate(values)
    assert len(VALUES) >= 5
    for path in VALUES:
        check.validate(merged(values, yaml.safe_load(path.read_text())))
    for wrong in ({"server": {"grpcPort": 0}}, {"server": {"drainSecond": 1}},
                  {"models": {"source": "download", "download": {"revision": "main"}}},
                  {"models": {"source": "bundle"}}, {"image": {"digest": "sha256:1"}},
                  {"server": {"extraFlags": ["drain_seconds=1"]}}, {"unknown": 1}):
        assert not check.is_valid(merged(values, wrong)), wrong


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlays(kustomize, overlay):
    documents = kustomize(overlay)
    assert validate(documents)
    assert not violations(documents)
    understood(documents)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_that_is_applied_has_a_count(kustomize, overlay):
    """`kubectl apply` takes away a count that it once gave: none is given."""
    assert all("replicas" not in document["spec"] for document in kustomize(overlay)
               if document["kind"] == "Deployment")


def test_kserve_overlay_builds(kustomize):
    kinds = sorted(document["kind"] for document in kustomize("kserve"))
    assert kinds == ["ClusterServingRuntime", *["InferenceService"] * 3]


def test_the_chart_stands_alone():
    assert not [path for path in CHART.rglob("*") if path.is_symlink()]
    assert list((CHART / "files/rules").glob("*.yml"))
    assert list((CHART / "files/dashboards").glob("*.json"))


@pytest.mark.parametrize("overlay", ["base", *(f"overlays/{name}" for name in OVERLAYS)])
def test_deleting_leaves_the_namespace(overlay):
    """`kubectl delete -k` removes what the folder names, however deep."""
    folders, resources = [KUBERNETES / overlay], []
    while folders:
        folder = folders.pop()
        for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
            if (folder / name).is_dir():
                folders.append(folder / name)
            else:
                resources += read(folder / name)
    kinds = {document["kind"] for document in resources}
    assert "Deployment" in kinds and "Namespace" not in kinds


@pytest.mark.parametrize("mutual", [False, True])
def test_secrets_carry_the_authority(tmp_path, mutual):
    """What tls.mutual mounts is in the Secret that the sample makes."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "kubectl $*" >>calls\n')
    (tmp_path / "kubectl").chmod(0o755)
    if mutual:
        (tmp_path / "ca.crt").touch()
    subprocess.run([KUBERNETES / "samples/secrets.sh", "here"], cwd=tmp_path, check=True,
                   env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    keys, tls = (tmp_path / "calls").read_text().splitlines()
    assert keys.startswith("kubectl -n here create secret generic longview-keys --from-literal=keys=team-a:")
    assert "--type=kubernetes.io/tls --from-file=tls.crt --from-file=tls.key" in tls
    assert ("--from-file=ca.crt" in tls) == mutual


def test_the_pod_of_helm_test_stays_for_its_log(tool):
    documents = helm_template(tool("helm"), "--show-only", "templates/test.yaml")
    policies, = [document["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
                 for document in documents]
    assert policies == "before-hook-creation"


def test_the_base_is_the_chart(tool, tmp_path):
    tool("helm")
    subprocess.run([KUBERNETES / "render.sh", tmp_path], check=True)
    rendered = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.yaml"))
    assert len(rendered) == 15
    for path in rendered:
        assert (tmp_path / path).read_text() == (KUBERNETES / path).read_text(), path


def test_helm_lint(tool):
    for values in [None, *VALUES]:
        chosen = ["--values", values] if values else []
        done = subprocess.run([tool("helm"), "lint", "--strict", CHART, *chosen],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_values_file(tool, values):
    documents = helm_template(tool("helm"), "--values", values)
    # Image volumes came with 1.31.
    versions = VERSIONS[1:] if values.stem == "image-volume" else VERSIONS
    assert validate(documents, versions)
    assert not violations(documents)
    understood(documents)


@pytest.mark.parametrize("wrong", ["models.source=volume", "models.source=image",
                                   "models.source=download", "server.grpcPort=70000"])
def test_helm_refuses(tool, wrong):
    done = subprocess.run([tool("helm"), "template", "x", CHART, "--kube-version", "1.33", "--set",
                           wrong], capture_output=True, text=True)
    assert done.returncode != 0
    assert wrong.partition("=")[0] in done.stderr


@pytest.mark.parametrize("endpoint,port", [
    ("https://huggingface.co", 443), ("http://mirror.example", 80), ("https://mirror.example:8443/hub", 8443)])
def test_a_download_may_pass(tool, endpoint, port):
    """The network policy opens the port of the hub or its mirror."""
    documents = helm_template(tool("helm"), "--values", CHART / "ci/download.yaml", "--set",
                              f"models.download.endpoint={endpoint}")
    policy, = [document for document in documents if document["kind"] == "NetworkPolicy"]
    ports = [one["port"] for rule in policy["spec"]["egress"] for one in rule["ports"]]
    assert ports == [53, 53, port]
    (_, pod), = pods(documents)
    assert f"'{endpoint}/your-organisation/" in pod["initContainers"][0]["args"][0]


def test_resources_of_other_projects(tool):
    """KServe, the Prometheus operator, KEDA and the inference extension, by their own schemas."""
    import jsonschema
    if not SCHEMAS.is_dir():
        pytest.skip(f"{SCHEMAS} is not here: tests/support/install_deploy_tools.sh fetches it")
    known = definitions(SCHEMAS)
    documents = [document for path in FILES for document in read(path) if is_foreign(document)]
    documents += [document for values in VALUES
                  for document in helm_template(tool("helm"), "--values", values)
                  if is_foreign(document)]
    checked = set()
    for document in documents:
        if document["apiVersion"].startswith("gateway.networking.k8s.io/"):
            continue
        schema = known[document["apiVersion"], document["kind"]]
        jsonschema.Draft7Validator(schema).validate(document)
        checked.add(document["kind"])
    assert checked == {"ClusterServingRuntime", "InferenceService", "PodMonitor", "PrometheusRule",
                       "ScaledObject", "InferencePool"}
    runtime, = read(KUBERNETES / "overlays/kserve/runtime.yaml")
    runtime["spec"]["protocolVersion"] = "v2"
    schema = known[runtime["apiVersion"], runtime["kind"]]
    assert not jsonschema.Draft7Validator(schema).is_valid(runtime)
