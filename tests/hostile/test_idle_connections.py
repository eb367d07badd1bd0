"""More idle connections than the server has descriptors."""

import time

import pytest

from http1 import connect

CONNECTIONS = 300
DESCRIPTORS = 256


@pytest.mark.serves("code-language", "code-lm", descriptors=DESCRIPTORS)
@pytest.mark.parametrize("port", ["grpc_port", "http_port"])
def test_idle_connections_leave_room(victim, port):
    with victim.watched() as figures:
        idle = []
        for _ in range(CONNECTIONS):
            try:
                idle.append(connect(getattr(victim, port), timeout=1))
            except OSError:
                break
        figures["connected"] = len(idle)
        time.sleep(2)
        victim.assert_alive()  # Also meanwhile, by both transports.
        for raw in idle:
            raw.close()


@pytest.mark.serves("code-language", "code-lm", descriptors=DESCRIPTORS)
def test_many_addresses_leave_room_too(victim):
    """The same from forty addresses; afterwards everything answers again."""
    idle = []
    for port in (victim.grpc_port, victim.http_port):
        for i in range(CONNECTIONS):
            try:
                idle.append(connect(port, source=f"127.0.0.{10 + i % 40}", timeout=1))
            except OSError:
                pass
    time.sleep(1)
    assert victim.process.poll() is None
    for raw in idle:
        raw.close()
    time.sleep(1)
    victim.assert_alive()
