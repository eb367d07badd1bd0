"""Adds up JUnit files and prints one line: N passed, N failed, N skipped.

Beside a file NAME.xml of ctest, NAME/PROGRAM.xml may hold the single tests of a program; they count
in place of the program. A program that fails though each of its tests passed (at its exit, or under
a sanitizer) or that leaves no results (after a crash) counts as one failure.

Beside a file NAME.xml, NAME.again.xml may hold a second run of its failed tests, without neighbours.
A test that passes there counts as passed and is listed as UNSTEADY: it depends on its neighbours or
on the machine's load, which somebody has to mend.

Exit status 1 if anything failed, if a file is missing, or if nothing ran.
"""

import os
import sys
import xml.etree.ElementTree as ElementTree

LINES_SHOWN = 12


def verdict(case):
    """Returns "passed", "failed" or "skipped", and what a failed test printed last."""
    children = {child.tag: child for child in case}
    for tag in ("failure", "error"):
        if tag in children:
            printed = children.get("system-out", children[tag])
            return "failed", printed.text or children[tag].get("message") or ""
    if "skipped" in children or case.get("result") == "suppressed":  # GoogleTest: DISABLED_
        return "skipped", ""
    if case.get("status") in ("fail", "notrun"):  # ctest: failed, or the program is missing
        return "failed", children["system-out"].text or "" if "system-out" in children else ""
    return "passed", ""


def read(path):
    """Returns [(name, verdict, output)] of one JUnit file, with the single tests of programs."""
    found = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, result = case.get("name", ""), verdict(case)
        report = f"{path.removesuffix('.xml')}/{name}.xml"
        if os.path.isfile(report):
            tests = [(f"{name} {test}", *rest) for test, *rest in read(report)]
            found += tests
            if result[0] == "passed" or any(test[1] == "failed" for test in tests):
                continue
        found.append((f"{case.get('classname', '')}.{name}", *result))
    return found


def read_again(path):
    """Returns the names that passed in the second run beside `path`, if there was one."""
    again = path.removesuffix(".xml") + ".again.xml"
    if not os.path.exists(again):
        return set()
    return {name for name, result, _ in read(again) if result == "passed"}


def main(paths):
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for path in paths:
        try:
            results, steadied = read(path), read_again(path)
        except (OSError, ElementTree.ParseError) as error:
            results, steadied = [(path, "failed", str(error))], set()
        for name, result, output in results:
            if result == "failed":
                for line in output.splitlines()[-LINES_SHOWN:]:
                    print(f"  {line}")
                if name in steadied:
                    result = "passed"
                print(f"{'UNSTEADY' if result == 'passed' else 'FAILED'} {name}")
            totals[result] += 1
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**totals))
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
