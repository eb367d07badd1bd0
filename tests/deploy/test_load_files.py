"""The load tests: every call has a file, every file is a request of its call, the script runs."""

import json
import re
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_tools import protoc

from server_process import ROOT, Server, ZOO

LOAD = ROOT / "deploy/load"
FILES = sorted(LOAD.glob("*.json"))
# Calls that a load test would only break things with, or that the server does not offer.
LEFT_OUT = {
    "CloseDocument": "needs a handle of an open document",
    "LoadModel": "changes the server", "UnloadModel": "changes the server",
    "RepositoryModelLoad": "changes the server", "RepositoryModelUnload": "changes the server",
    "List": "says what Check says, of all services at once", "Watch": "never ends",
    "ServerReflectionInfo": "asked once by tools before they call",
}
NOT_OFFERED = re.compile(r"SharedMemory|TraceSetting|LogSettings")


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory):
    """All proto files of the APIs."""
    file = tmp_path_factory.mktemp("descriptors") / "all.pb"
    protos = [str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto")
              if path.parts[-2] != "rpc" and "opentelemetry" not in path.parts]
    assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", "--include_imports",
                        f"--descriptor_set_out={file}", *protos]) == 0
    return descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes()).file


@pytest.fixture(scope="module")
def pool(descriptors):
    """A pool of their own: other tests load the same files."""
    pool = descriptor_pool.DescriptorPool()
    for entry in descriptors:
        pool.Add(entry)
    return pool


def method(pool, call):
    service, _, name = call.rpartition(".")
    return pool.FindServiceByName(service).methods_by_name[name]


def filled_in(value):
    """A request with ghz's templates replaced by what may stand in any string or bytes field."""
    if isinstance(value, dict):
        return {key: filled_in(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [filled_in(entry) for entry in value]
    if isinstance(value, str):
        return re.sub(r"\{\{.*?\}\}", "QUJD", value, flags=re.DOTALL)
    return value


def test_every_call_has_a_file(descriptors):
    offered = {f"{entry.package}.{service.name}.{call.name}" for entry in descriptors
               for service in entry.service for call in service.method
               if call.name not in LEFT_OUT and not NOT_OFFERED.search(call.name)}
    assert {json.loads(path.read_text())["call"] for path in FILES} == offered


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_a_request(pool, path):
    config = json.loads(path.read_text())
    assert config["name"] == path.stem
    assert config["connections"] <= config["concurrency"]
    request = message_factory.GetMessageClass(method(pool, config["call"]).input_type)
    for entry in config["data"]:
        json_format.ParseDict(filled_in(entry), request())


@pytest.mark.slow
def test_the_script_writes_a_report(tmp_path):
    """All files against the bundled models; an overload is refused with the code for it."""
    with Server([ZOO], "--max_queue_seconds=1") as server:
        done = subprocess.run(
            [sys.executable, LOAD / "run.py", "--server", server.grpc, "--http", server.http,
             "--seconds", "3", "--outstanding", "1,16", "--out", tmp_path],
            capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "report.md").read_text()
    for path in FILES:
        assert f"| {path.stem} |" in report
    for name in ("classify", "generate", "infer", "stream_infer", "open_document"):
        assert json.loads((tmp_path / f"{name}.json").read_text())["statusCodeDistribution"]["OK"]
    streams = json.loads((tmp_path / "streams.json").read_text())
    assert streams["tokenGap"]["count"] > streams["timeToFirstToken"]["count"] > 0
    overload = json.loads((tmp_path / "arrivals_3.json").read_text())["statusCodeDistribution"]
    assert set(overload) <= {"OK", "ResourceExhausted"}
