"""One file an attack, against the real binary; run with -s to see the figures."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
for folder in (HERE, HERE.parent / "e2e"):
    sys.path.insert(0, str(folder))

from victim import Victim  # noqa: E402


@pytest.fixture(scope="module")
def victims():
    """The running servers of a file by how they were started."""
    running = {}
    yield running
    for server in running.values():
        server.end()


@pytest.fixture
def victim(request, victims):
    """A server of the models that the mark `serves` names, by default the two of code. Those that
    an attack has harmed or changed are replaced."""
    mark = request.node.get_closest_marker("serves")
    models = mark.args if mark else ("code-language", "code-lm")
    options = mark.kwargs if mark else {}
    key = repr((models, options))
    if key in victims and victims[key].spoiled:
        victims.pop(key).end()
    if key not in victims:
        victims[key] = Victim(*models, **options)
    return victims[key]
