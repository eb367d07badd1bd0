"""The stock clients that a run has used, as the table of client/README.md: tests marked `client(name, calls)` or
`client(name, calls, version)` count for it. Without a version the name is that of a Python package of this environment,
of a program that tests/support/install_clients.sh pins, or of one that tells its version."""

import collections
import importlib.metadata
import pathlib
import re
import subprocess

PINS = pathlib.Path(__file__).parents[1] / "support/install_clients.sh"
HEAD = ["| client | version | calls | tests |", "|---|---|---|---|"]


def version_of(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
    variable = name.upper().replace("-", "_")
    if pin := re.search(rf"^{variable}=v(\S+)", PINS.read_text(), re.MULTILINE):
        return pin[1]
    told = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    return re.search(r"\d+(\.\d+)+", told)[0]


def row(name, calls, version, passed, total):
    result = "pass" if passed == total else f"{total - passed} of {total} FAIL"
    return f"| `{name}` | {version} | {calls} | {result} |"


class ClientTable:
    """One run's results."""

    def __init__(self):
        self.results = collections.defaultdict(list)  # By what the mark holds.

    def add(self, client, passed):
        """client: (name, calls) or (name, calls, version)."""
        self.results[client].append(passed)

    def lines(self):
        rows = [row(name, calls, *(version or [version_of(name)]), sum(results), len(results))
                for (name, calls, *version), results in sorted(self.results.items())]
        return HEAD + rows if rows else []
