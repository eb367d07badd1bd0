"""Which tests run without neighbours (README.md), and the table of stock clients."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "e2e"))

from client_table import ClientTable  # noqa: E402

# Folders, files and tests that get the mark `alone`, and what a neighbour would change.
ALONE = {
    "browser": "a browser beside a server: seconds that pictures take to settle",
    "cluster": "one node and its images for all tests",
    "deploy/test_rolling_restart.py": "an open-loop load on ports that are taken and freed again",
    "e2e/test_generation_load.py": "memory of the server; steps of a prompt by the clock",
    "e2e/test_hostile_requests.py::test_cancelled_calls_leave_nothing_behind":
        "memory of the server under 64 calls at a time",
    "e2e/test_operations.py::test_sigterm_drains_and_exits_0":
        "what is answered within the two seconds of draining",
    "e2e/test_shares.py": "seconds of a document and gaps of streams",
    "faults": "memory, descriptors and seconds of a server whose machine fails",
    "hostile": "memory of the server, seconds of its probes and of short requests",
    "soak": "memory and latency over minutes",
}


def alone(item):
    name = item.nodeid.partition("[")[0]
    return any(name == entry or name.startswith((entry + "/", entry + "::")) for entry in ALONE)


def pytest_collection_modifyitems(items):
    for item in items:
        if alone(item):
            item.add_marker(pytest.mark.alone)


TABLE = ClientTable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Reports carry the mark `client`: the process that prints the table need not have run the test."""
    report = yield
    if report.when == "call":
        report.user_properties += [("client", mark.args) for mark in item.iter_markers("client")]
    return report


def pytest_runtest_logreport(report):
    if report.when == "call" and not report.skipped:
        for name, value in report.user_properties:
            if name == "client":
                TABLE.add(tuple(value), report.passed)


def pytest_terminal_summary(terminalreporter):
    for line in TABLE.lines():
        terminalreporter.write_line(line)
