"""longview-server knows the environment variables of the project's other programs, and warns of all
others that begin like its flags."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
READ = re.compile(r"""(?:environ\.get\(|environ\[|environ\.pop\(|getenv\(|environment\()["']LONGVIEW_([A-Z0-9_]+)
                      |\$\{?LONGVIEW_([A-Z0-9_]+)""", re.VERBOSE)
SOURCES = ROOT / "server/config/flag_sources.cc"


def variables_read():
    """What scripts, tests and clients read: {name without the prefix: files}."""
    listing = subprocess.run(["git", "ls-files", "-z", "*.py", "*.sh", "*.cc", "*.h", "*.mjs"], cwd=ROOT,
                             check=True, capture_output=True, text=True).stdout
    found = {}
    for name in filter(None, listing.split("\0")):
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        for match in READ.finditer(text):
            found.setdefault(match[1] or match[2], []).append(name)
    return found


def quoted(text):
    return set(re.findall(r'"(\w+)"', text))


def test_the_list_is_whole():
    source = SOURCES.read_text(encoding="utf-8")
    listed = quoted(re.search(r"kOtherPrograms\[\] = {(.*?)};", source, re.DOTALL)[1])
    flags = {name.upper() for name in quoted(re.search(r"FlagNames\(\) {(.*?)};", source, re.DOTALL)[1])}
    found = variables_read()
    assert "SERVER" in found and "PREFIX" in found
    missing = {name: found[name] for name in found.keys() - listed - flags}
    assert not missing, f"add them to kOtherPrograms in {SOURCES.relative_to(ROOT)}: {missing}"
    assert not listed - found.keys(), "nothing reads these any more"
