"""Adds up JUnit files and prints one line: N passed, N failed, N skipped.

Exit status 1 if anything failed, if a file is missing, or if nothing ran.
"""

import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    """Returns (passed, failed, skipped, names of the failed) of one JUnit file."""
    passed = failed = skipped = 0
    names = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        if kinds & {"failure", "error"}:
            failed += 1
            names.append(name)
        elif "skipped" in kinds:
            skipped += 1
        elif case.get("status") in ("fail", "notrun"):  # ctest: the program is missing
            failed += 1
            names.append(name)
        else:
            passed += 1
    return passed, failed, skipped, names


def main(paths):
    totals = [0, 0, 0]
    for path in paths:
        try:
            passed, failed, skipped, names = count(path)
        except (OSError, ElementTree.ParseError) as error:
            passed, failed, skipped, names = 0, 1, 0, [f"{path}: {error}"]
        for name in names:
            print(f"FAILED {name}")
        totals = [totals[0] + passed, totals[1] + failed, totals[2] + skipped]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
