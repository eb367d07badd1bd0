"""Reads Kubernetes documents and checks them: strict schemas, and the rules of this project."""

import functools
import json
import pathlib
import subprocess

import yaml

from server_process import ROOT

KUBERNETES = ROOT / "deploy/kubernetes"
CHART = ROOT / "deploy/helm/longview"
POD_PATHS = {"Deployment": ("spec", "template", "spec")}
# Kinds from other projects' resource definitions, not from Kubernetes.
FOREIGN = {"kserve.io", "monitoring.coreos.com", "keda.sh", "inference.networking.k8s.io",
           "gateway.networking.k8s.io", "kustomize.config.k8s.io"}


class Loader(yaml.CSafeLoader):
    """Takes a lone `=` for text, as Kubernetes does."""


Loader.add_constructor("tag:yaml.org,2002:value", Loader.construct_yaml_str)


def load(text):
    return [document for document in yaml.load_all(text, Loader) if document]


def read(path):
    return load(pathlib.Path(path).read_text())


def is_foreign(document):
    group = document["apiVersion"].partition("/")[0]
    return any(group == name or group.endswith("." + name) for name in FOREIGN)


def is_kubernetes_file(path):
    return path.suffix == ".yaml" and path.name not in ("kustomization.yaml",
                                                        "prometheus-adapter-values.yaml")


def merged(values, over):
    """Values as helm merges a file over the chart's own."""
    out = dict(values)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value) if both else value
    return out


def helm_template(helm, *arguments):
    done = subprocess.run([helm, "template", "longview", CHART, "--namespace", "longview",
                           "--kube-version", "1.33", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return load(done.stdout)


def pods(documents):
    """[(name, pod spec)] of everything that makes pods."""
    for document in documents:
        path = POD_PATHS.get(document["kind"])
        if path:
            yield document["metadata"]["name"], functools.reduce(dict.__getitem__, path, document)


def flags(container):
    """The container's arguments as {flag: value}."""
    pairs = (argument.removeprefix("--").partition("=") for argument in container["args"])
    return {name: value for name, _, value in pairs}


def strict(schema):
    """A resource definition's schema as JSON schema that refuses unknown fields."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    out = {key: strict(value) for key, value in schema.items() if not key.startswith("x-")}
    open_ended = (schema.get("x-kubernetes-preserve-unknown-fields")
                  or "additionalProperties" in schema)
    if isinstance(schema.get("properties"), dict) and not open_ended:
        out["additionalProperties"] = False
    if out.pop("nullable", False) and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out


def definitions(folder):
    """{(apiVersion, kind): strict schema} of the resource definitions in a folder."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*.yaml")):
        for document in read(path):
            if document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["properties"].update(apiVersion={}, kind={}, metadata={})
                found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def server_config(server, arguments):
    """The configuration that longview-server reads from a container's arguments."""
    done = subprocess.run([server, "--print_config", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
