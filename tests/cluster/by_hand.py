"""A cluster to look at: brings one up with the image of the project loaded, prints how to talk to it,
and takes it down at the end of its input (Ctrl-D) or when it is ended.

    python tests/cluster/by_hand.py [TARBALL]   as root; TARBALL: build/longview-*.tar.gz
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from machine import load_server_image, newest_tarball  # noqa: E402
from node import PARTS, Node, why_not  # noqa: E402


def main():
    if reason := why_not():
        sys.exit(reason)
    with Node() as node:
        load_server_image(node, pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else newest_tarball())
        shell = f"export KUBECONFIG={node.keys}/admin.conf PATH={PARTS}/bin:$PATH"
        print(f"nsenter -n -t {node.holder} bash -c '{shell}; exec bash'", flush=True)
        print(f"LONGVIEW_CLUSTER={node.state}:{node.holder} pytest tests/cluster", flush=True)
        os.read(0, 1)


if __name__ == "__main__":
    main()
