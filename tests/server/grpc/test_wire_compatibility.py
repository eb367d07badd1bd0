"""Names, numbers and types of proto/inference against Triton's own client stubs."""

import pathlib
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
# Added by Longview; Triton has no field of that number.
OURS_ALONE = {("inference.ModelMetadataResponse", "properties")}


def compile_files(folder):
    out = folder / "inference.pb"
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}",
                    f"--descriptor_set_out={out}", "inference/grpc_service.proto",
                    "inference/model_config.proto"], check=True, cwd=PROTO)
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


def theirs():
    files = []
    for module in (service_pb2, model_config_pb2):
        proto = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(proto)
        files.append(proto)
    return files


def messages(files):
    """Full name -> DescriptorProto, nested ones included."""
    found = {}

    def add(prefix, message):
        name = f"{prefix}.{message.name}"
        found[name] = message
        for nested in message.nested_type:
            add(name, nested)

    for file in files:
        for message in file.message_type:
            add(file.package, message)
    return found


def fields(message):
    return {field.name: (field.number, field.type, field.label, field.type_name,
                         message.oneof_decl[field.oneof_index].name
                         if field.HasField("oneof_index") else None)
            for field in message.field}


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return compile_files(tmp_path_factory.mktemp("proto"))


def test_every_message_is_tritons(ours):
    their_messages = messages(theirs())
    our_messages = messages(ours)
    assert len(our_messages) > 40
    for name, message in our_messages.items():
        expected = fields(their_messages.get(name, descriptor_pb2.DescriptorProto()))
        numbers = {number for number, *_ in expected.values()}
        for field, wire in fields(message).items():
            if (name, field) in OURS_ALONE:
                assert wire[0] not in numbers, (name, field)
                continue
            if name.startswith("inference.ModelMetadataResponse.PropertiesEntry"):
                continue
            assert expected.get(field) == wire, (name, field)


def test_every_rpc_is_tritons(ours):
    def rpcs(files):
        return {rpc.name: (rpc.input_type, rpc.output_type, rpc.client_streaming,
                           rpc.server_streaming)
                for file in files for service in file.service for rpc in service.method}

    expected = rpcs(theirs())
    mine = rpcs(ours)
    assert set(expected) - set(mine) == {
        "SystemSharedMemoryStatus", "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister",
        "CudaSharedMemoryStatus", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister",
        "TraceSetting", "LogSettings"}
    for name, signature in mine.items():
        assert expected[name] == signature, name


def test_every_enum_value_is_tritons(ours):
    def values(files):
        return {(enum.name, value.name): value.number
                for file in files for enum in file.enum_type for value in enum.value}

    expected = values(theirs())
    mine = values(ours)
    assert mine
    for key, number in mine.items():
        assert expected[key] == number, key
