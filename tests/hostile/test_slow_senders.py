"""Requests that are begun and not ended: heads, bodies and gRPC messages."""

import time

import pytest

from http1 import connect, head
from http2 import DATA, PREFACE, Http2, frame, message
from victim import CLASSIFY, MOST_BYTES

LARGE = 60_000_000


def test_half_heads(victim):
    with victim.watched():
        senders = [connect(victim.http_port) for _ in range(100)]
        for _ in range(30):
            for raw in senders:
                try:
                    raw.sendall(b"POST /v1/classify HTTP/1.1\r\nX-" if not _ else b"y" * 100)
                except OSError:
                    pass
            time.sleep(0.05)
        for raw in senders:
            raw.close()


def test_half_bodies(victim):
    """Each sends most of a large body and stops: forty would hold 2.4 GB."""
    with victim.watched() as figures:
        senders, sent = [], 0
        for _ in range(40):
            raw = connect(victim.http_port, timeout=0.5)
            senders.append(raw)
            try:
                raw.sendall(head("POST", "/v1/classify", Content_Length=LARGE))
                for _ in range(57):
                    raw.sendall(b" " * 1_000_000)
                    sent += 1
            except OSError:
                pass
        figures["sent_MB"] = sent
        time.sleep(1)
        for raw in senders:
            raw.close()


@pytest.mark.parametrize("connections,streams", [(1, 40), (40, 1)])
def test_half_messages(victim, connections, streams):
    with victim.watched() as figures:
        attackers = [Http2(victim.grpc_port).await_settings() for _ in range(connections)]
        sent = 0
        part = message(bytes(LARGE))[:-1_000_000]
        for attacker in attackers:
            for i in range(streams):
                attacker.call(2 * i + 1, CLASSIFY)
                sent += attacker.data(2 * i + 1, part, seconds=1)
                if sent > 2 * MOST_BYTES + 40 * 65536:
                    break
            if sent > 2 * MOST_BYTES + 40 * 65536:
                break
        figures["sent_MB"] = sent // 1_000_000
        time.sleep(1)
        for attacker in attackers:
            attacker.close()


def test_half_prefaces_and_frames(victim):
    """Connections that stop inside the preface or inside a frame cost little, and end."""
    with victim.watched():
        attackers = []
        for i in range(100):
            raw = connect(victim.grpc_port)
            raw.sendall(PREFACE[:5 + i % 19] if i % 2 else PREFACE + frame(DATA, 0, 1)[:5])
            attackers.append(raw)
        time.sleep(2)
        victim.assert_alive()
        for raw in attackers:
            raw.close()
