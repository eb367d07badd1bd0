"""Lengths of HTTP/1.1 requests in bytes that were recorded."""

import re


def chunked_length(body):
    """Length of a chunked body with its end."""
    at = 0
    while True:
        line_end = body.index(b"\r\n", at)
        size = int(body[at:line_end].split(b";")[0], 16)
        at = line_end + 2 + size + 2
        if size == 0:
            return at


def request_length(data):
    """Length of the first request in `data`."""
    head = data.index(b"\r\n\r\n") + 4
    if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", data[:head]):
        return head + chunked_length(data[head:])
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", data[:head])
    return head + (int(length[1]) if length else 0)
