"""Protobuf messages of 60 MB whose every two bytes become an object."""

import grpc
import pytest

SIZE = 60_000_000
INFER = "/inference.GRPCInferenceService/ModelInfer"
TEXT = "/longview.v1.TextService/"

MESSAGES = {
    # ModelInferRequest: inputs = 5, outputs = 6, parameters = 4, raw_input_contents = 7.
    "empty inputs": (INFER, b"\x2a\x00"),
    "empty outputs": (INFER, b"\x32\x00"),
    "parameters": (INFER, b"\x22\x05\x0a\x01a\x12\x00"),
    "raw contents": (INFER, b"\x3a\x00"),
    # An input: parameters = 4, shape = 3.
    "shape one by one": (INFER, b"\x2a\x02\x18\x01"),
    # GenerateRequest: stop = 15. ClassifyRequest: token_ids = 4, not packed.
    "empty stops": (TEXT + "Generate", b"\x7a\x00"),
    "token ids one by one": (TEXT + "Classify", b"\x20\x01"),
    "unknown fields": (TEXT + "Classify", b"\xa2\x06\x00"),
}


QUICK = ("empty inputs", "empty stops", "token ids one by one")
CASES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MESSAGES]


@pytest.mark.parametrize("name", CASES)
def test_tiny_fields(victim, name):
    method, field = MESSAGES[name]
    with victim.watched() as figures, victim.channel() as channel:
        calls = [channel.unary_stream(method)(field * (SIZE // len(field)), timeout=60)
                 for _ in range(3)]
        codes = []
        for call in calls:
            try:
                codes.append(("OK", len(list(call))))
            except grpc.RpcError as error:
                codes.append(error.code().name)
        figures["answers"] = codes
        assert set(codes) <= {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "NOT_FOUND", "INTERNAL",
                              "UNAVAILABLE"}
