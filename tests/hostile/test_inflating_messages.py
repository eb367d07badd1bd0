"""A gRPC message, and a body, of a megabyte that inflate to one gibibyte."""

import zlib

import pytest

from http1 import post
from http2 import Http2, message
from victim import CLASSIFY

INFLATED = 1 << 30


@pytest.fixture(scope="module")
def bombs():
    """The same zeros as gzip and as zlib; about a megabyte each."""
    made = {}
    for name, bits in (("gzip", 31), ("deflate", 15)):
        packer = zlib.compressobj(6, zlib.DEFLATED, bits)
        zeros = bytes(1 << 24)
        made[name] = b"".join(packer.compress(zeros) for _ in range(INFLATED >> 24))
        made[name] += packer.flush()
    return made


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
