"""Protobuf by hand: as much of the wire's form as the fault tests send and compare."""


def varint(number):
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field: an int, or bytes or text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(message):
    """(number, value) of each field in turn; numbers of fixed size are bytes."""
    at = 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = take()
        if tag & 7 == 0:
            yield tag >> 3, take()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or take()
        yield tag >> 3, message[at:at + size]
        at += size
