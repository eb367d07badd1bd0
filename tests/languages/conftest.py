"""A server for clients of other languages, and the table of those that a run has used."""

import collections
import pathlib
import re
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).resolve().parents[1] / "e2e")]

import programs  # noqa: E402
from client_models import client_models_server  # noqa: E402
from server_process import wait_until  # noqa: E402

RESULTS: dict[str, list] = collections.defaultdict(list)  # Outcomes by client.


@pytest.fixture(scope="session")
def server():
    with client_models_server() as server:
        yield server


CODES = ("NOT_FOUND", "UNIMPLEMENTED")


def ended(server):
    """code -> requests that ended with it, as the server counts them."""
    samples = re.findall(r'^longview_request_duration_seconds_count\{.*?code="(\w+)".*\} (\d+)$',
                         server.get("/metrics")[2].decode(), re.MULTILINE)
    return collections.Counter({code: sum(int(count) for other, count in samples if other == code) for code in CODES})


class Calls:
    """What a client answered to each case, and how many requests it sent for those that are refused, by code."""

    def __init__(self, client, server):
        before = ended(server)
        self.answers = programs.run(client, server.grpc if programs.is_grpc(client) else server.url)
        # A request is counted a moment after its answer.
        wait_until(lambda: all((ended(server) - before)[code] for code in CODES), what="a refused request of each code")
        self.refused = ended(server) - before


@pytest.fixture(scope="session")
def calls(server):
    """client -> its Calls, made once."""
    made = {}

    def get(client):
        programs.require(programs.split(client)[0])
        if client not in made:
            made[client] = Calls(client, server)
        return made[client]
    return get


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and hasattr(item, "callspec") and "client" in item.callspec.params:
        report.user_properties.append(("language client", item.callspec.params["client"]))
    return report


def pytest_runtest_logreport(report):
    if report.when == "call" and not report.skipped:
        for name, value in report.user_properties:
            if name == "language client":
                RESULTS[value].append(report.passed)


def pytest_terminal_summary(terminalreporter):
    if not RESULTS:
        return
    terminalreporter.write_line("| client | language | version | calls | tests passed |\n|---|---|---|---|---|")
    for client, (package, called) in programs.CLIENTS.items():
        if client in RESULTS:
            language, outcomes = programs.split(client)[0], RESULTS[client]
            terminalreporter.write_line(f"| `{package}` | {language} | {programs.version(client)} | {called} |"
                                        f" {sum(outcomes)} of {len(outcomes)} |")
