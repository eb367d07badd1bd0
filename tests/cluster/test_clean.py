"""A cluster leaves the machine as it was, however it ends. Runs before the cluster of the others."""

import os
import subprocess
import sys

import pytest

from machine import namespaces, picture, processes
from node import HERE, Node, wait_until

ALONE = "LONGVIEW_CLUSTER" not in os.environ
START = ("import sys; sys.path.insert(0, sys.argv[1])\n"
         "from node import Node\n"
         "with Node() as node: print(node.state, flush=True); sys.stdin.read()")


@pytest.mark.skipif(not ALONE, reason="another cluster runs")
def test_the_end_of_a_cluster(possible):
    before, spaces = picture(), namespaces()
    with Node() as node:
        state = str(node.state)
        assert node.get("nodes")["items"][0]["metadata"]["name"] == "node1"
        assert namespaces() - spaces and state in " ".join(processes().values())
    assert picture() == before
    assert namespaces() <= spaces
    assert not [line for line in processes().values() if state in line]


@pytest.mark.skipif(not ALONE, reason="another cluster runs")
def test_the_end_of_a_process_that_holds_a_cluster(possible):
    """SIGKILL to the process: the kernel ends the rest; files in the temporary folder stay."""
    before, spaces = picture(), namespaces()
    holder = subprocess.Popen([sys.executable, "-c", START, HERE], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    state = holder.stdout.readline().strip()
    assert state in " ".join(processes().values())
    holder.kill()
    holder.communicate()
    wait_until(lambda: not [line for line in processes().values() if state in line], 60,
               "no process of the cluster is left")
    wait_until(lambda: namespaces() <= spaces, 60, "no namespace of the cluster is left")
    now = picture()
    for kind in ("mounts", "interfaces", "rules", "settings"):
        assert now[kind] == before[kind]
    # The next cluster takes away what is left.
    with Node():
        pass
    subprocess.run(["rm", "-rf", state], check=True)
    after = picture()
    assert after == before
