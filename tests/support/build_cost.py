"""Says what a build folder costs: the number of its edges, the seconds of all of them together, and
the slowest ten.

  tests/support/build_cost.py build

Reads .ninja_log, which holds how long each edge took when it ran last, beside others on the same cores.
Edges that a compiler cache answers are short. Outputs that are gone do not count.
"""

import pathlib
import sys

SLOWEST = 10


def edges(build):
    """Returns [(seconds, the first of its outputs)] of the edges that made what lies in `build`."""
    last = {}
    for line in (build / ".ninja_log").read_text().splitlines():
        if not line.startswith("#"):
            begin, end, _, output, command = line.split("\t")
            last[output] = ((int(end) - int(begin)) / 1000, command)
    made = {}
    for output, (seconds, command) in last.items():
        if (build / output).exists():
            made.setdefault(command, (seconds, output))
    return list(made.values())


def main(folder):
    try:
        made = edges(pathlib.Path(folder))
    except OSError as error:
        print(f"no build log: {error}")
        return 0
    print(f"{len(made)} edges, {sum(seconds for seconds, _ in made):.0f} s in sum; the slowest:")
    for seconds, output in sorted(made, key=lambda edge: (-edge[0], edge[1]))[:SLOWEST]:
        print(f"{seconds:8.1f} s  {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
