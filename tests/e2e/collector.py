"""A trace collector (OTLP over gRPC) that keeps what it is sent."""

import concurrent.futures
import pathlib
import sys
import tempfile

import grpc
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def messages():
    """The module of the collector's messages, compiled from the tree's definitions."""
    folder = tempfile.mkdtemp(prefix="longview-otlp-")
    files = sorted(str(path) for path in (PROTO / "opentelemetry").rglob("*.proto"))
    assert protoc.main(["protoc", f"-I{PROTO}", f"--python_out={folder}", *files]) == 0
    sys.path.insert(0, folder)
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    return trace_service_pb2


class Collector:
    """Use as a context manager; `spans` holds (span, resource attributes) in order of arrival."""

    def __init__(self):
        self.spans = []
        pb = messages()

        def export(request, context):
            for resource in request.resource_spans:
                about = {a.key: a.value.string_value for a in resource.resource.attributes}
                for scope in resource.scope_spans:
                    self.spans += [(span, about) for span in scope.spans]
            return pb.ExportTraceServiceResponse()

        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
            "opentelemetry.proto.collector.trace.v1.TraceService",
            {"Export": grpc.unary_unary_rpc_method_handler(
                export, request_deserializer=pb.ExportTraceServiceRequest.FromString,
                response_serializer=lambda message: message.SerializeToString())}),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def trace(self, trace_id):
        """The spans of a trace by name."""
        return {span.name: span for span, _ in list(self.spans) if span.trace_id.hex() == trace_id}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.server.stop(None)
