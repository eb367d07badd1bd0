"""The stock clients that a run has used, as the table of the README: tests marked `client(name,
calls)` count for it. The name is that of a Python package, or of a program that
tests/support/install_clients.sh pins."""

import collections
import importlib.metadata
import pathlib
import re

PINS = pathlib.Path(__file__).parents[1] / "support/install_clients.sh"
HEAD = ["| client | version | calls | tests passed |", "|---|---|---|---|"]


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return re.search(rf"^{name.upper()}=v(\S+)", PINS.read_text(), re.MULTILINE)[1]


def row(name, calls, passed, total):
    return f"| `{name}` | {version_of(name)} | {calls} | {passed} of {total} |"


class ClientTable:
    """One run's results."""

    def __init__(self):
        self.results = collections.defaultdict(list)  # By (name, calls).

    def add(self, client, passed):
        """client: (name, calls)."""
        self.results[client].append(passed)

    def lines(self):
        rows = [row(*mark, sum(results), len(results))
                for mark, results in sorted(self.results.items())]
        return HEAD + rows if rows else []
