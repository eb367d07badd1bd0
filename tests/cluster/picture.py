"""Calls per second and errors over time, from journals of test runs, as plain SVG.

    LONGVIEW_JOURNALS=build/journals tests/run.sh --cluster
    python tests/cluster/picture.py build/journals deploy/kubernetes/calls.svg
"""

import collections
import json
import pathlib
import sys

# Journal of a test: what is shown in it.
JOURNALS = {"test_updates_and_rollbacks": "Updates and rollbacks of two pods",
            "test_pods_follow_the_work_that_waits": "The autoscaler takes one pod to two and back"}
KINDS = {"grpc": "#1f5fa8", "rest": "#3a9a5b", "grpc-stream": "#7a4fb0", "rest-stream": "#c08a1e",
         "embed": "#777777", "document": "#222222"}
RED = "#c62828"
BIN, WIDTH, HEIGHT, LEFT, RIGHT, TOP = 5, 900, 170, 50, 20, 64


def rates(calls, begin, end):
    """Calls per second by kind in bins of BIN seconds, by when they were answered, and errors."""
    bins = int((end - begin) / BIN) + 1
    found = collections.defaultdict(lambda: [0.0] * bins)
    for call in calls:
        at = int((call["at"] + call["seconds"] - begin) / BIN)
        found["errors" if call["error"] else call["kind"]][at] += 1 / BIN
    return found


def panel(top, title, lines):
    """One journal: a line for each kind of call, errors in red, events as vertical lines."""
    calls = [line for line in lines if "kind" in line]
    begin = min(call["at"] for call in calls)
    end = max(call["at"] + call["seconds"] for call in calls)
    found = rates(calls, begin, end)
    high = max(max(values) for values in found.values()) * 1.1
    base = top + TOP + HEIGHT

    def x(at):
        return LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)

    def line(kind, color, width):
        points = " ".join(f"{x(begin + (i + 0.5) * BIN):.1f},{base - value / high * HEIGHT:.1f}"
                          for i, value in enumerate(found[kind]))
        return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}"/>'

    errors = sum(1 for call in calls if call["error"])
    repeated = sum(len(call["repeated"]) for call in calls)
    parts = [f'<text x="{LEFT}" y="{top + 18}" font-size="14" font-weight="bold">{title}: {len(calls)} calls, '
             f'{errors} failed, {repeated} refusals repeated</text>']
    at = LEFT
    for kind, color in [*((kind, color) for kind, color in KINDS.items() if kind in found), ("errors", RED)]:
        parts.append(f'<text x="{at}" y="{top + 36}" fill="{color}">{kind}</text>')
        parts.append(line(kind, color, 2 if kind == "errors" else 1.3))
        at += 12 + 7 * len(kind)
    for i, mark in enumerate(line for line in lines if "mark" in line):
        where = x(mark["at"])
        parts.append(f'<path d="M{where:.1f},{top + TOP - 6} V{base}" stroke="#aaa" stroke-dasharray="3,3"/>'
                     f'<text x="{where + 2:.1f}" y="{top + TOP - 8 + 11 * (i % 3)}" fill="#555" '
                     f'font-size="10">{mark["mark"]}</text>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        second = (end - begin) * share
        parts.append(f'<text x="{x(begin + second):.0f}" y="{base + 15}" text-anchor="middle">'
                     f'{second:.0f} s</text>')
    parts.append(f'<path d="M{LEFT},{top + TOP} V{base} H{WIDTH - RIGHT}" fill="none" stroke="#888"/>'
                 f'<text x="{LEFT - 6}" y="{top + TOP + 8}" text-anchor="end">{high:.1f}/s</text>'
                 f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">0</text>')
    return "".join(parts)


def picture(journals):
    """journals: {title: lines}."""
    each = TOP + HEIGHT + 34
    panels = "".join(panel(i * each, title, lines) for i, (title, lines) in enumerate(journals.items()))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{each * len(journals)}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
            f"{panels}</svg>\n")


def main(folder, target):
    files = {title: pathlib.Path(folder, f"{name}.jsonl") for name, title in JOURNALS.items()}
    found = {title: [json.loads(line) for line in path.read_text().splitlines()]
             for title, path in files.items() if path.exists()}
    if not found:
        sys.exit(f"{folder} has none of {', '.join(JOURNALS)}")
    pathlib.Path(target).write_text(picture(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
