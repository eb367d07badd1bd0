"""A gRPC message, and a body, of a megabyte that inflate to one gibibyte."""

import struct
import zlib

import pytest

from http1 import post
from http2 import Http2, message
from victim import CLASSIFY

INFLATED = 1 << 30


@pytest.fixture(scope="module")
def bombs():
    """The same zeros as gzip (RFC 1952) and as zlib (RFC 1950); about a megabyte each. A part that
    ends with a full flush depends on none before it: one is packed and repeated."""
    zeros = bytes(1 << 24)
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    part = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = part * (INFLATED // len(zeros)) + packer.flush()
    crc, adler = 0, 1
    for _ in range(INFLATED // len(zeros)):
        crc, adler = zlib.crc32(zeros, crc), zlib.adler32(zeros, adler)
    return {"gzip": b"\x1f\x8b\x08" + bytes(6) + b"\xff" + packed + struct.pack("<II", crc, INFLATED),
            "deflate": b"\x78\x9c" + packed + struct.pack(">I", adler)}


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_messages_inflate_within_their_limit(victim, bombs, encoding):
    with victim.watched() as figures:
        calls = 0
        for _ in range(3):
            attacker = Http2(victim.grpc_port).await_settings()
            attacker.call(1, CLASSIFY, ("grpc-encoding", encoding))
            attacker.data(1, message(bombs[encoding], compressed=True), end=True)
            attacker.read(3)
            calls += 1
            attacker.close()
        figures.update(sent_MB=round(len(bombs[encoding]) / 1e6, 1), calls=calls)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_bodies_inflate_within_their_limit(victim, bombs, encoding):
    with victim.watched() as figures:
        statuses = [post(victim.http_port, "/v1/classify", bombs[encoding],
                         headers={"Content-Encoding": encoding})[0] for _ in range(3)]
        figures["answers"] = statuses
        assert set(statuses) <= {0, 413, 429}
