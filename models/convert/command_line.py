"""The frame of a converter as a program: one line about what was written, or one about why nothing
was."""

import sys

from restricted_unpickler import RefusedError


def run(source, convert):
    """The exit status of convert(), which returns the line to print. Of `source`, what was to be
    converted, stderr tells what is refused, cannot be read or is no text."""
    try:
        print(convert())
    except (RefusedError, OSError, ValueError) as error:
        print(f"{source}: {error}", file=sys.stderr)
        return 1
    return 0
