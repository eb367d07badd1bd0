"""The gRPC calls of a soak: ModelInfer, and several requests on one ModelStreamInfer."""

import random
import threading

import grpc
from tritonclient.grpc import service_pb2

UNARY = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
STATUSES = {grpc.StatusCode.OK: 200, grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
            grpc.StatusCode.UNAVAILABLE: 503, grpc.StatusCode.NOT_FOUND: 404}

_kept = threading.local()


def infer(model, rows):
    """A call with a request for each row of token ids; more than one go as a stream."""
    requests = []
    for number, ids in enumerate(rows):
        request = service_pb2.ModelInferRequest(model_name=model, id=str(number))
        tensor = request.inputs.add(name="input_ids", datatype="INT64", shape=[1, len(ids)])
        tensor.contents.int64_contents.extend(ids)
        requests.append(request.SerializeToString())
    return (UNARY if len(requests) == 1 else STREAM, model, requests)


def _channel(port):
    """The thread's channel; now and then a new one."""
    if getattr(_kept, "port", None) != port or random.random() < 0.05:
        if hasattr(_kept, "channel"):
            _kept.channel.close()
        _kept.port = port
        _kept.channel = grpc.insecure_channel(f"127.0.0.1:{port}",
                                              [("grpc.use_local_subchannel_pool", 1)])
    return _kept.channel


def _start(port, call, key, timeout):
    path, _, requests = call
    given = {"metadata": [("authorization", f"Bearer {key}")], "timeout": timeout}
    if path == UNARY:
        method = _channel(port).unary_unary(
            path, response_deserializer=service_pb2.ModelInferResponse.FromString)
        return method.future(requests[0], **given)
    method = _channel(port).stream_stream(
        path, response_deserializer=service_pb2.ModelStreamInferResponse.FromString)
    return method(iter(requests), **given)


def _essence(answer):
    return (answer.id, [(output.name, list(output.shape)) for output in answer.outputs],
            list(answer.raw_output_contents) or [str(output) for output in answer.outputs])


def ask(port, call, key, timeout=120):
    """(status as of HTTP, essence or message)."""
    started = _start(port, call, key, timeout)
    try:
        if call[0] == UNARY:
            return 200, _essence(started.result())
        answers = list(started)
    except grpc.RpcError as error:
        return STATUSES.get(error.code(), 500), f"{error.code()} {error.details()}"
    failed = [answer.error_message for answer in answers if answer.error_message]
    if not failed:
        return 200, sorted(_essence(answer.infer_response) for answer in answers)
    # A stream's errors are text alone; the model that comes and goes may be gone or not yet there.
    for status, words in ((404, ("NOT_FOUND", "not found", "not loaded")), (503, ("is loading",))):
        if any(word in message for message in failed for word in words):
            return status, failed[0]
    return 500, failed[0]


def leave(port, call, key, seconds):
    """Cancels the call after `seconds`, or lets its deadline pass."""
    started = _start(port, call, key, max(seconds, 0.001) if random.random() < 0.5 else 60)
    timer = threading.Timer(seconds, started.cancel)
    timer.start()
    try:
        if call[0] == UNARY:
            started.result()
        else:
            list(started)
    except (grpc.RpcError, grpc.FutureCancelledError):
        pass
    timer.cancel()
