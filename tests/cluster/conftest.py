"""One cluster for all tests of this folder. Where none can run, the tests are skipped and say why."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "deploy"), str(HERE.parent / "e2e")]

from chart import Release  # noqa: E402
from machine import load_server_image, newest_tarball, picture  # noqa: E402
from node import Node, why_not  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


class Running(Node):
    """A cluster that by_hand.py started; it stays."""

    def __init__(self, state, holder):
        self.state, self.holder = pathlib.Path(state), int(holder)
        self.keys, self.logs = self.state / "keys", self.state / "log"


@pytest.fixture(scope="session")
def possible():
    if "LONGVIEW_CLUSTER" not in os.environ and (reason := why_not()):
        pytest.skip(reason)


@pytest.fixture(scope="session")
def tarball():
    found = newest_tarball()
    if found is None:
        pytest.skip("no build/longview-*.tar.gz: tests/run.sh --cluster makes it")
    return found


@pytest.fixture(scope="session")
def node(possible, tarball):
    """The cluster with the project's image. LONGVIEW_CLUSTER names one that by_hand.py runs."""
    if running := os.environ.get("LONGVIEW_CLUSTER"):
        yield Running(*running.split(":"))
        return
    before = picture()
    with Node() as started:
        load_server_image(started, tarball)
        yield started
    assert picture() == before


@pytest.fixture
def journal(tmp_path, request):
    """The file that a test's calls are written to; in LONGVIEW_JOURNALS, where that names a folder."""
    folder = pathlib.Path(os.environ.get("LONGVIEW_JOURNALS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{request.node.name.partition('[')[0]}.jsonl"
    file.unlink(missing_ok=True)
    return file


@pytest.fixture
def release(node, request):
    """The chart in a namespace of its own, gone after the test."""
    name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", "-")[:50]
    started = Release(node, name)
    yield started
    if request.node.stash.get(FAILED, False):
        print(started.story())
    started.remove()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report

