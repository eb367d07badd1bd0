"""Plain HTTP from the attacker's address."""

import http.client
import socket

from victim import ATTACKER


def connect(port, source=ATTACKER, receive_buffer=None, timeout=30):
    """A socket; a small receive buffer makes a reader that takes nothing felt soon."""
    raw = socket.socket()
    raw.settimeout(timeout)
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.bind((source, 0))
    raw.connect(("127.0.0.1", port))
    return raw


def head(method, path, **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(port, path, body, content_type="application/json", headers=None, timeout=60):
    """(status, body) of one post from the attacker's address; status 0 if the connection was
    closed instead."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout,
                                            source_address=(ATTACKER, 0))
    try:
        connection.request("POST", path, body, {"Content-Type": content_type, **(headers or {})})
    except OSError:
        pass  # An answer may be there all the same.
    try:
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def send_until_closed(raw, pieces):
    """Sends pieces until the server closes the connection; returns the bytes sent."""
    sent = 0
    try:
        for piece in pieces:
            raw.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent
