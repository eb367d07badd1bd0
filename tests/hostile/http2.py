"""As much HTTP/2 as an attacker needs: frames as one pleases, over a plain socket."""

import select
import socket
import struct
import time

from victim import ATTACKER

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
CANCEL = 8


def text(value):
    """A string of HPACK, not Huffman-coded, shorter than 127 bytes."""
    return bytes([len(value)]) + value.encode()


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def message(payload, compressed=False):
    """A gRPC message with its prefix."""
    return struct.pack(">BI", compressed, len(payload)) + payload


class Http2:
    """One connection. `window`: what the server may send on each stream."""

    def __init__(self, port, window=65535, source=ATTACKER, settings=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10,
                                               source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.room = 65535  # Bytes that may be sent on the connection,
        self.rooms = {}    # and on each stream.
        self.initial = 65535
        self.closed = False
        self.buffer = b""
        self.seen = {}     # Frames by kind.
        if settings:
            self.send(PREFACE + frame(SETTINGS, 0, 0,
                                      struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))

    def send(self, data):
        """False once the server has closed the connection."""
        try:
            self.socket.sendall(data)
        except OSError:
            self.closed = True
        return not self.closed

    def call(self, stream, path, *extra, end=False):
        """The headers of a gRPC call; `extra`: more pairs."""
        fields = [(":method", "POST"), (":scheme", "http"), (":path", path),
                  (":authority", "localhost"), ("te", "trailers"),
                  ("content-type", "application/grpc"), *extra]
        block = b"".join(b"\x00" + text(name) + text(value) for name, value in fields)
        self.rooms[stream] = self.initial
        return self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block))

    def reset(self, stream):
        return self.send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    def data(self, stream, payload, end=False, seconds=20):
        """Sends as the windows allow; returns the bytes that left."""
        give_up = time.monotonic() + seconds
        sent = 0
        while sent < len(payload) and not self.closed and time.monotonic() < give_up:
            size = min(16384, self.room, self.rooms[stream], len(payload) - sent)
            if size <= 0:
                self.read(0.05)
                continue
            last = end and sent + size == len(payload)
            self.send(frame(DATA, END_STREAM if last else 0, stream, payload[sent:sent + size]))
            self.room -= size
            self.rooms[stream] -= size
            sent += size
            self.read(0)
        return sent

    def read(self, seconds):
        """Takes what the server sent; answers nothing."""
        while not self.closed and select.select([self.socket], [], [], seconds)[0]:
            try:
                more = self.socket.recv(1 << 16)
            except OSError:
                more = b""
            if not more:
                self.closed = True
                return
            self.buffer += more
            seconds = 0
            while len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) < 9 + length:
                    break
                kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
                payload, self.buffer = self.buffer[9:9 + length], self.buffer[9 + length:]
                self.take(kind, flags, stream, payload)

    def take(self, kind, flags, stream, payload):
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream:
                self.rooms[stream] = self.rooms.get(stream, 0) + more
            else:
                self.room += more
        elif kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[i:i + 6])
                if name == INITIAL_WINDOW_SIZE:
                    for known in self.rooms:
                        self.rooms[known] += value - self.initial
                    self.initial = value
            self.send(frame(SETTINGS, ACK, 0))

    def await_settings(self):
        """Until the server has spoken."""
        end = time.monotonic() + 10
        while SETTINGS not in self.seen and not self.closed and time.monotonic() < end:
            self.read(0.1)
        return self

    def close(self):
        self.socket.close()
