"""Chunks that never end where they should: in extensions, trailers, and one byte at a time."""

import pytest

from http1 import connect, head, send_until_closed

MOST = 600_000_000  # Bytes sent at most; a server that minds closes long before.
PIECE = b"x" * (1 << 20)


def attack(port, path, beginning, piece=PIECE, most=MOST):
    raw = connect(port)
    raw.sendall(head("GET" if path == "/livez" else "POST", path, Transfer_Encoding="chunked"))
    sent = send_until_closed(raw, [beginning] + [piece] * (most // len(piece)))
    raw.close()
    return sent


@pytest.mark.parametrize("path", ["/livez", "/v1/classify"])
def test_endless_chunk_extension(victim, path):
    with victim.watched() as figures:
        figures["sent_MB"] = attack(victim.http_port, path, b"1;e=") // 1_000_000


def test_endless_trailer(victim):
    with victim.watched() as figures:
        sent = attack(victim.http_port, "/v1/classify", b"0\r\n", b"a: " + b"x" * 4000 + b"\r\n")
        figures["sent_MB"] = sent // 1_000_000


def test_bodies_where_none_belongs(victim):
    with victim.watched() as figures:
        raw = connect(victim.http_port)
        raw.sendall(head("GET", "/livez", Content_Length=MOST))
        figures["sent_MB"] = send_until_closed(raw, [PIECE] * (MOST >> 20)) // 1_000_000
        raw.close()


def test_chunks_of_one_byte(victim):
    with victim.watched() as figures:
        sent = attack(victim.http_port, "/v1/classify", b"", b"1\r\nx\r\n" * 20_000, 60_000_000)
        figures["sent_MB"] = sent // 1_000_000
